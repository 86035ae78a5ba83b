"""The links of the graph: which node of the project reads which. The browser lays the graph out."""

from __future__ import annotations

from dataclasses import dataclass

from engine.compile.nodes.manifest import Manifest, Model


@dataclass(frozen=True, slots=True)
class Link:
    parent: str
    child: str


def links_of(manifest: Manifest) -> dict[Link, bool]:
    """What names what in the project, and whether it is read as a stream."""
    links: dict[Link, bool] = {}
    for model in manifest.models:
        reads = [(item.node, item.stream) for item in model.inputs if not item.through]
        inlined = [manifest.nodes.get(f"model.{name}") for name in model.inlined]
        reads += [(node.id, any(i.stream for i in node.inputs)) for node in inlined if isinstance(node, Model)]
        for node, stream in reads:
            if node in manifest.nodes:
                link = Link(node, model.id)
                links[link] = links.get(link, False) or stream
    for end in manifest.ends:
        links |= {Link(node, end): False for node in manifest.parents(end)}
    return links
