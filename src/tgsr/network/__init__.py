"""Networks: architecture, derivatives carried forward, the trainable stand-in for all fields of a problem."""
