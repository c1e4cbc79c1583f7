"""The references behind what a report used, and no others: the paper of each method, test and optimiser."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from tgsr.report._table import Column, Table, words
from tgsr.report._task_view import TaskView
from tgsr.study._results import StudyResults


@dataclass(frozen=True)
class Reference:
    """A publication, with the fields of its BibTeX entry in their order."""

    key: str
    kind: str
    authors: str  # "Family, Given and Family, Given"
    title: str
    year: int | None
    fields: tuple[tuple[str, str], ...] = field(default=())

    @property
    def text(self) -> str:
        """One line for a reader."""
        people = [name.partition(",")[0] for name in self.authors.split(" and ")]
        who = people[0] + (" et al." if len(people) > 3 else "")
        if 1 < len(people) <= 3:
            who = f"{', '.join(people[:-1])} and {people[-1]}"
        known = dict(self.fields)
        where = [known[k] for k in ("journal", "booktitle", "institution", "publisher", "howpublished") if k in known]
        volume = [known["volume"]] if "volume" in known else []
        pages = [known["pages"].replace("--", "\N{EN DASH}")] if "pages" in known else []
        year = f" ({self.year})" if self.year else ""
        return f"{who}{year}: {self.title}. {', '.join([*where, *volume, *pages])}".rstrip(". ") + "."

    @property
    def bibtex(self) -> str:
        """The entry."""
        year = (("year", str(self.year)),) if self.year else ()
        lines = [("author", self.authors), ("title", "{" + self.title + "}"), *year, *self.fields]
        inside = "".join(f"  {name} = {{{_tex(value)}}},\n" for name, value in lines)
        return f"@{self.kind}{{{self.key},\n{inside}}}\n"


def _journal(name: str, volume: str, pages: str, number: str = "", doi: str = "") -> tuple[tuple[str, str], ...]:
    all_of_it = (("journal", name), ("volume", volume), ("number", number), ("pages", pages), ("doi", doi))
    return tuple((key, value) for key, value in all_of_it if value)


CATALOGUE = {
    r.key: r
    for r in (
        Reference(
            "tgsr-pinn", "unpublished", "Hu, Qian and Fan, Bin and Xiao, Yao and Lin, Zhicheng and Xiong, Meixin",
            "Target-Guided Selective Reweighting for Physics-Informed Neural Network Inverse Problems: A Transfer "
            "Learning Approach", None, (("note", "Manuscript"),),
        ),
        Reference(
            "raissi2019", "article", "Raissi, Maziar and Perdikaris, Paris and Karniadakis, George Em",
            "Physics-informed neural networks: A deep learning framework for solving forward and inverse problems "
            "involving nonlinear partial differential equations", 2019,
            _journal("Journal of Computational Physics", "378", "686--707", doi="10.1016/j.jcp.2018.10.045"),
        ),
        Reference(
            "li2018l2sp", "inproceedings", "Li, Xuhong and Grandvalet, Yves and Davoine, Franck",
            "Explicit Inductive Bias for Transfer Learning with Convolutional Networks", 2018,
            (("booktitle", "Proceedings of the 35th International Conference on Machine Learning"),
             ("pages", "2825--2834")),
        ),
        Reference(
            "benzaken2022", "inproceedings", "Ben Zaken, Elad and Goldberg, Yoav and Ravfogel, Shauli",
            "BitFit: Simple Parameter-efficient Fine-tuning for Transformer-based Masked Language-models", 2022,
            (("booktitle", "Proceedings of the 60th Annual Meeting of the Association for Computational Linguistics "
              "(Volume 2: Short Papers)"), ("pages", "1--9")),
        ),
        Reference(
            "he2018sfp", "inproceedings", "He, Yang and Kang, Guoliang and Dong, Xuanyi and Fu, Yanwei and Yang, Yi",
            "Soft Filter Pruning for Accelerating Deep Convolutional Neural Networks", 2018,
            (("booktitle", "Proceedings of the 27th International Joint Conference on Artificial Intelligence"),
             ("pages", "2234--2240")),
        ),
        Reference(
            "yu2022gpinn", "article", "Yu, Jeremy and Lu, Lu and Meng, Xuhui and Karniadakis, George Em",
            "Gradient-enhanced physics-informed neural networks for forward and inverse PDE problems", 2022,
            _journal("Computer Methods in Applied Mechanics and Engineering", "393", "114823",
                     doi="10.1016/j.cma.2022.114823"),
        ),
        Reference(
            "hu2022lora", "inproceedings",
            "Hu, Edward J. and Shen, Yelong and Wallis, Phillip and Allen-Zhu, Zeyuan and Li, Yuanzhi and Wang, Shean "
            "and Wang, Lu and Chen, Weizhu",
            "LoRA: Low-Rank Adaptation of Large Language Models", 2022,
            (("booktitle", "International Conference on Learning Representations"),),
        ),
        Reference(
            "molchanov2019", "inproceedings",
            "Molchanov, Pavlo and Mallya, Arun and Tyree, Stephen and Frosio, Iuri and Kautz, Jan",
            "Importance Estimation for Neural Network Pruning", 2019,
            (("booktitle", "IEEE/CVF Conference on Computer Vision and Pattern Recognition"),
             ("pages", "11264--11272")),
        ),
        Reference(
            "wang2019negative", "inproceedings",
            "Wang, Zirui and Dai, Zihang and Póczos, Barnabás and Carbonell, Jaime",
            "Characterizing and Avoiding Negative Transfer", 2019,
            (("booktitle", "IEEE/CVF Conference on Computer Vision and Pattern Recognition"),
             ("pages", "11293--11302")),
        ),
        Reference(
            "wilcoxon1945", "article", "Wilcoxon, Frank", "Individual Comparisons by Ranking Methods", 1945,
            _journal("Biometrics Bulletin", "1", "80--83", "6"),
        ),
        Reference(
            "holm1979", "article", "Holm, Sture", "A Simple Sequentially Rejective Multiple Test Procedure", 1979,
            _journal("Scandinavian Journal of Statistics", "6", "65--70", "2"),
        ),
        Reference(
            "efron1979", "article", "Efron, Bradley", "Bootstrap Methods: Another Look at the Jackknife", 1979,
            _journal("The Annals of Statistics", "7", "1--26", "1"),
        ),
        Reference(
            "rao1945", "article", "Rao, C. Radhakrishna",
            "Information and the accuracy attainable in the estimation of statistical parameters", 1945,
            _journal("Bulletin of the Calcutta Mathematical Society", "37", "81--91"),
        ),
        Reference(
            "cramer1946", "book", "Cramér, Harald", "Mathematical Methods of Statistics", 1946,
            (("publisher", "Princeton University Press"),),
        ),
        Reference(
            "hopf1950", "article", "Hopf, Eberhard", "The partial differential equation u_t + u u_x = mu u_xx", 1950,
            _journal("Communications on Pure and Applied Mathematics", "3", "201--230", "3"),
        ),
        Reference(
            "cole1951", "article", "Cole, Julian D.",
            "On a quasi-linear parabolic equation occurring in aerodynamics", 1951,
            _journal("Quarterly of Applied Mathematics", "9", "225--236", "3"),
        ),
        Reference(
            "levenberg1944", "article", "Levenberg, Kenneth",
            "A method for the solution of certain non-linear problems in least squares", 1944,
            _journal("Quarterly of Applied Mathematics", "2", "164--168", "2"),
        ),
        Reference(
            "marquardt1963", "article", "Marquardt, Donald W.",
            "An Algorithm for Least-Squares Estimation of Nonlinear Parameters", 1963,
            _journal("Journal of the Society for Industrial and Applied Mathematics", "11", "431--441", "2"),
        ),
        Reference(
            "nielsen1999", "techreport", "Nielsen, Hans Bruun", "Damping Parameter in Marquardt's Method", 1999,
            (("institution", "Technical University of Denmark"), ("number", "IMM-REP-1999-05")),
        ),
        Reference(
            "liu1989", "article", "Liu, Dong C. and Nocedal, Jorge",
            "On the limited memory BFGS method for large scale optimization", 1989,
            _journal("Mathematical Programming", "45", "503--528"),
        ),
        Reference(
            "kingma2015", "inproceedings", "Kingma, Diederik P. and Ba, Jimmy",
            "Adam: A Method for Stochastic Optimization", 2015,
            (("booktitle", "International Conference on Learning Representations"),),
        ),
        Reference(
            "jax2018", "misc",
            "Bradbury, James and Frostig, Roy and Hawkins, Peter and Johnson, Matthew James and Leary, Chris and "
            "Maclaurin, Dougal and Necula, George and Paszke, Adam and VanderPlas, Jake and Wanderman-Milne, Skye and "
            "Zhang, Qiao",
            "JAX: composable transformations of Python+NumPy programs", 2018,
            (("howpublished", "https://github.com/jax-ml/jax"),),
        ),
        Reference(
            "virtanen2020", "article", "Virtanen, Pauli and others",
            "SciPy 1.0: fundamental algorithms for scientific computing in Python", 2020,
            _journal("Nature Methods", "17", "261--272"),
        ),
    )
}  # fmt: skip

PAPER = ("tgsr-pinn",)
OF_METHODS = {
    "full": PAPER, "lightweight": PAPER, "partial": PAPER, "tl-gpinn": ("yu2022gpinn", *PAPER),
    "bitfit": ("benzaken2022",), "l2-sp": ("li2018l2sp",), "sfp": ("he2018sfp",), "lora": ("hu2022lora",),
    "tgsr": (*PAPER, "molchanov2019"),
    "adapt-only": PAPER, "random-reset": PAPER, "random-decay": PAPER, "score-shuffled": PAPER,
}  # fmt: skip
OF_TASKS = {"allen-cahn-burgers": ("hopf1950", "cole1951")}
OF_OPTIMISERS = {
    r"levenberg": ("levenberg1944", "marquardt1963", "nielsen1999"), r"l-?bfgs": ("liu1989",),
    r"\badam\b": ("kingma2015",),
}  # fmt: skip


def citations(results: StudyResults, tasks: Iterable[TaskView]) -> tuple[Reference, ...]:
    """What this report used: equations as losses, methods, tests, bounds, optimisers, libraries."""
    used = ["raissi2019"]
    for view in tasks:
        used += [key for arm in view.arms for key in OF_METHODS.get(view.first(arm).method, ())]
        used += OF_TASKS.get(view.task, ())
        used += ["tgsr-pinn"] if view.paper else []
        used += ["wilcoxon1945", "holm1979", "efron1979", "virtanen2020"] if view.pairs() else []
        used += ["wang2019negative"] if view.negative_transfer else []
        used += ["rao1945", "cramer1946"] if view.limits else []
    for pattern, keys in OF_OPTIMISERS.items():
        used += keys if re.search(pattern, f"{results.preset}\n{results.spec}", re.IGNORECASE) else []
    return tuple(CATALOGUE[key] for key in dict.fromkeys([*used, "jax2018"]))


def bibtex(references: Iterable[Reference]) -> str:
    """The entries as a .bib file."""
    return "\n".join(reference.bibtex for reference in references)


def citations_table(references: Iterable[Reference]) -> Table:
    """The references as a list to read."""
    columns = (Column("key", align="left"), Column("reference", align="left"))
    rows = tuple((words(r.key), words(r.text)) for r in references)
    told = "Please cite these along with this package; `tgsr study report --format tex` writes them as a .bib file."
    return Table("citations-used", "References", told, columns, rows)


def _tex(text: str) -> str:
    accents = {"é": r"{\'e}", "á": r"{\'a}", "ó": r"{\'o}"}
    for letter, command in accents.items():
        text = text.replace(letter, command)
    return text.replace("u_t + u u_x = mu u_xx", r"$u_t + u u_x = \mu u_{xx}$")
