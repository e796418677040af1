"""Files of designs that are private at every point, changed in ways that a reader must notice."""

from __future__ import annotations

import math
from pathlib import Path

from forgery import reseal


def altered(saved: Path, change) -> Path:
    """The file with its content changed and a digest that fits."""
    return reseal(saved, change, saved.with_name("altered.json"))


def mesh_of(body):
    return body["problem"]["constraints"][0]["everywhere"]


def move_vertex(body):
    vertices = mesh_of(body)["vertices"]
    vertices[vertices.index([2.0, 2.0])] = [2.0 + 2.0**-20, 2.0]


def last_digit(row):
    def change(body):
        texts = body["mechanism"]["rows"][row][1]
        texts[0] = f"{int(texts[0], 16) + 1:x}"

    return change


def moved_mass(body):
    """A part in 10^9 from the largest entry of a row to another."""
    mechanism = body["mechanism"]
    texts = mechanism["rows"][12][1]
    values = [int(text, 16) for text in texts]
    most = (1 << mechanism["bits"]) // 10**9
    values[values.index(max(values))] -= most
    values[0] += most
    texts[:] = [f"{value:x}" for value in values]


def drop_triangle(body):
    mesh_of(body)["triangles"].pop()
    body["multipliers"]["gradient"][0]["vectors"].pop()


def raise_figure(name, by=1e-6):
    def change(body):
        body["result"][name] *= 1 + by
        body["result"]["objective"] = body["result"]["loss"]

    return change


def lower_loss(body):
    body["result"]["loss"] = math.nextafter(body["result"]["loss"], 0)
