// Looks at a page: what browser_test.go calls seen.
(async () => {
  const root = document.documentElement;
  const wide = root.scrollWidth - root.clientWidth;

  // What stands in the boxes of the picture: labels, and the marks of faults. Each stays in its box.
  const labels = [];
  const outside = [];
  for (const node of document.querySelectorAll(".picture .node, .picture .join")) {
    const frame = node.getBoundingClientRect();
    for (const part of node.querySelectorAll(":scope span:not(:has(*)), :scope code, :scope a")) {
      const box = part.getBoundingClientRect();
      if (box.width === 0) continue;
      if (part.closest(".node, .join") === node) labels.push({ name: part.textContent, box });
      if (box.left < frame.left || box.right > frame.right || box.top < frame.top || box.bottom > frame.bottom) outside.push(part.textContent);
    }
  }
  const overlaps = [];
  labels.forEach((a, i) => labels.slice(i + 1).forEach((b) => {
    // Line boxes touch; letters do not.
    const across = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
    const down = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
    if (across > 0.5 && down > 2) overlaps.push(`${a.name} / ${b.name}`);
  }));

  const result = await axe.run(document, { resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] });
  const violations = result.violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.html.slice(0, 160)}: ${n.failureSummary}`));

  return {
    Wide: wide, Overlaps: overlaps, Outside: outside, Labels: labels.length,
    Hacked: window.hacked === true, Violations: violations.slice(0, 8), Passes: result.passes.length,
  };
})();
