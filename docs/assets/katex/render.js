// Sets what pymdownx.arithmatex has marked; without a network.
document.addEventListener("DOMContentLoaded", () => {
  for (const place of document.querySelectorAll(".arithmatex")) {
    const text = place.textContent.trim();
    katex.render(text.slice(2, -2), place, { displayMode: place.tagName === "DIV", throwOnError: false });
  }
});
