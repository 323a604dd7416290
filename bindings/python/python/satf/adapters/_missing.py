"""What is said where the package of an adapter is not installed."""

from __future__ import annotations


def missing(adapter: str, package: str, error: ImportError) -> ImportError:
    """An error that names the package as pip knows it, and what was wrong."""
    return ImportError(f"{adapter} needs the package {package}: {error}; hint: pip install {package}", name=error.name)
