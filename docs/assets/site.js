// What the theme leaves out for keyboards and for readers of the screen.
document$.subscribe(() => {
  const search = document.querySelector(".md-search[role=dialog]");
  if (search) search.setAttribute("aria-label", "Search");
  // what is wider than its place is scrolled by keys
  const wide = document.querySelectorAll("pre > code, .md-typeset__scrollwrap, .katex-display, .arithmatex");
  const reach = (node) => {
    if (node.scrollWidth > node.clientWidth && getComputedStyle(node).overflowX !== "visible") node.tabIndex = 0;
    else node.removeAttribute("tabindex");
  };
  const watch = new ResizeObserver((entries) => entries.forEach((entry) => reach(entry.target)));
  wide.forEach((node) => watch.observe(node));
  // the buttons beside every block of code, and the lists inside of a table of contents, are no landmarks
  const plain = () => document.querySelectorAll("nav.md-code__nav:not([role]), .md-nav--secondary nav:not([role])").forEach((node) => { node.setAttribute("role", "presentation"); node.removeAttribute("aria-label"); });
  plain();
  new MutationObserver(plain).observe(document.body, { childList: true, subtree: true });
});
