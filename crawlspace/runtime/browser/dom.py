"""The DOM of a page as HTML, by a script that runs in the page."""

from __future__ import annotations

SCRIPT = """async (longest) => {
  const end = Date.now() + longest;
  await new Promise((resolve) => {
    let timer = setTimeout(resolve, 100);
    const observer = new MutationObserver(() => {
      clearTimeout(timer);
      timer = setTimeout(resolve, Date.now() < end ? 100 : 0);
    });
    observer.observe(document, {subtree: true, childList: true, characterData: true});
  });
  const inert = document.implementation.createHTMLDocument('');
  const shown = (node) => {
    const copy = inert.importNode(node, true);
    const of = document.createTreeWalker(node, 1), to = inert.createTreeWalker(copy, 1);
    const hosts = [];
    do {
      if (of.currentNode.shadowRoot) hosts.push([of.currentNode.shadowRoot, to.currentNode]);
    } while (of.nextNode() && to.nextNode());
    for (const [root, host] of hosts) {
      const part = inert.createElement('div');
      for (const child of root.childNodes) part.append(child.nodeType === 1 ? shown(child) : inert.importNode(child, true));
      host.prepend(part);
    }
    return copy;
  };
  const root = document.documentElement;
  const found = root ? shown(root).outerHTML : '';
  return {html: '<!DOCTYPE html>' + found, base: document.baseURI, url: location.href, has_base: !!document.querySelector('base[href]')};
}"""
"""Waits until nothing has changed for a moment, `longest` ms at most; then copies the page into a document without scripts, what is in
open shadow roots before what is in their hosts."""
