// Looks at a page: what browser_test.go calls seen.
(async () => {
  const root = document.documentElement;
  const wide = root.scrollWidth - root.clientWidth;

  // What stands in the picture that is shown: its labels, and the marks of faults.
  const labels = [];
  const outside = [];
  for (const picture of document.querySelectorAll("svg.picture")) {
    if (!picture.checkVisibility()) continue;
    const frame = picture.getBoundingClientRect();
    for (const part of picture.querySelectorAll("text:not(.number), circle")) {
      const box = part.getBoundingClientRect();
      const name = part.textContent || `mark ${part.parentElement.textContent}`;
      labels.push({ name, box });
      if (box.left < frame.left || box.right > frame.right || box.top < frame.top || box.bottom > frame.bottom) outside.push(name);
    }
    // A label of a box stays in it.
    for (const rect of picture.querySelectorAll("rect.box")) {
      const box = rect.getBoundingClientRect();
      for (const label of labels) {
        const within = label.box.left >= box.left && label.box.left < box.right && label.box.top >= box.top && label.box.top < box.bottom;
        if (within && (label.box.right > box.right + 1 || label.box.bottom > box.bottom + 1)) outside.push(label.name);
      }
    }
  }
  const overlaps = [];
  labels.forEach((a, i) => labels.slice(i + 1).forEach((b) => {
    // Line boxes touch; letters do not.
    const across = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
    const down = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
    if (across > 0.5 && down > 2) overlaps.push(`${a.name} / ${b.name}`);
  }));

  // All rows of facts are alike: the first ones stand for them. A thousand take seconds.
  for (const row of document.querySelectorAll("details.facts li:nth-child(n+6)")) row.remove();
  const result = await axe.run(document, { resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] });
  const violations = result.violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.html.slice(0, 160)}: ${n.failureSummary}`));

  return {
    Wide: wide, Overlaps: overlaps, Outside: outside, Labels: labels.length,
    Hacked: window.hacked === true, Violations: violations.slice(0, 8), Passes: result.passes.length,
  };
})();
