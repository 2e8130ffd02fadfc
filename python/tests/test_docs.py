# SPDX-License-Identifier: Apache-2.0
"""Examples in docstrings and documents run, and everything public has a docstring and a type."""
import ast
import doctest
import importlib
import pathlib

import pytest

import qrane

HERE = pathlib.Path(__file__).resolve().parent.parent
MODULES = ["qrane", "qrane._dense", "qrane._factor", "qrane._updating", "qrane._robust_pca", "qrane._places",
           "qrane._files", "qrane.sparse", "qrane.dask", "qrane.torch", "qrane.jax"]
NEEDS = {"qrane.dask": "dask", "qrane.torch": "torch", "qrane.jax": "jax"}


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    pytest.importorskip(NEEDS.get(name, "numpy"))
    module = importlib.import_module(name)
    assert doctest.testmod(module, extraglobs={"qrane": qrane}).failed == 0


@pytest.mark.parametrize("path", [HERE / "README.md", HERE.parent / "docs" / "python.md"], ids=lambda p: p.name)
def test_documents(path):
    assert doctest.testfile(str(path), module_relative=False).failed == 0


def test_stubs_name_what_is_there():
    tree = ast.parse((HERE / "qrane" / "__init__.pyi").read_text())
    named = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            named |= {alias.asname or alias.name for alias in node.names}
    assert set(qrane.__all__) <= named
    for name in qrane.__all__:
        if name not in ("dask", "torch", "jax"):
            assert getattr(qrane, name).__doc__, name
