"""The stages of TGSR-PINN, each a pure function of arrays in a file of its own."""
