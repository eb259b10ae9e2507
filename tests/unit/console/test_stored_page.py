"""Stored pages for a frame: nothing is left of them that runs, loads or leads anywhere."""

from __future__ import annotations

import re

import pytest

from crawlspace.console.stored_page import framed_page

EVIL = "//evil.example/"


@pytest.mark.parametrize(
    "markup",
    [
        "<script>alert(1)</script>",
        f"<script src={EVIL}></script>",
        f"<SCRIPT SRC={EVIL}></SCRIPT>",
        f"<link rel=preconnect href={EVIL}>",
        f"<meta http-equiv=refresh content='0;url={EVIL}'>",
        f"<base href={EVIL} target=_top>",
        f"<img src={EVIL} srcset={EVIL} onerror=alert(1)>",
        f"<a href={EVIL} ping={EVIL} target=_top onclick=alert(1)>there</a>",
        "<a href='javascript:alert(1)'>there</a>",
        f"<form action={EVIL}><button formaction={EVIL}>x</button></form>",
        f"<iframe src={EVIL} srcdoc='<script>alert(1)</script>'></iframe>",
        f"<object data={EVIL}></object><embed src={EVIL}>",
        f"<svg><script>alert(1)</script><a xlink:href={EVIL}>x</a><image href={EVIL} /></svg>",
        f"<math><mtext><script src={EVIL}></script></mtext></math>",
        f"<video poster={EVIL} src={EVIL} autoplay></video>",
        f"<body background={EVIL} onload=alert(1)>",
        f"<table background={EVIL}><tr><td>x</table>",
        f"<noscript><p title='</noscript><img src={EVIL} onerror=alert(1)>'></noscript>",
        f"<template><img src={EVIL}></template>",
        f"<!--[if IE]><img src={EVIL}><![endif]-->",
        f"<?xml-stylesheet href={EVIL}?>",
    ],
)
def test_nothing_is_left_that_runs_or_loads(markup: str) -> None:
    made = framed_page(f"<html><head><title>T</title></head><body><p>before</p>{markup}<p>after</p></body></html>")
    assert made is not None
    assert "before" in made
    assert "alert" not in made
    assert not re.search(r"evil\.example", re.sub(r"title=\"[^\"]*\"", "", made)), made
    assert not re.search(r"<(script|link|base|img|iframe|object|embed|svg|math|meta http)", made, re.IGNORECASE), made
    assert not re.search(r"\s(href|src|srcset|action|on\w+)=", made, re.IGNORECASE), made


def test_what_a_page_says_is_left() -> None:
    made = framed_page("<h1 style='color: red'>Äpfel</h1><style>p { margin: 0 }</style><p>are <a href='/x'>here</a></p>")
    assert made is not None
    assert "Äpfel" in made
    assert "color: red" in made
    assert "<style>" in made
    assert "<a>here</a>" in made


@pytest.mark.parametrize("markup", ["", "   ", "<!-- nothing -->"])
def test_markup_without_a_page(markup: str) -> None:
    assert framed_page(markup) is None or "<" in (framed_page(markup) or "")


def test_deep_markup() -> None:
    made = framed_page("<div>" * 100_000 + "deep")
    assert made is None or "<script" not in made
