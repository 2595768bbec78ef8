// A terminal that is redrawn in place: each screen in one write, within the terminal's size, and
// restored at the end.
import { stripVTControlCharacters, styleText } from "node:util";
import fc from "fast-check";
import { expect, it } from "vitest";
import { Screen } from "../../src/cli/commands/run/top.ts";
import { sanitize, truncateLine } from "../../src/cli/format/terminal.ts";

it("replaces the previous screen in one write, and restores the terminal at the end", () => {
  const written: string[] = [];
  const terminal = { columns: 10, rows: 3, write: (text: string) => written.push(text) };
  const before = process.listenerCount("exit");
  {
    using screen = new Screen(terminal);
    screen.draw(["one", "a line that is too long", "three", "four"]);
    screen.draw(["short"]);
  }
  expect(written).toHaveLength(4);
  const [enter, first, second, leave] = written as [string, string, string, string];
  expect(enter).toContain("\u001b[?1049h");
  // Home, each line to its end, and clear below: shorter text leaves no rest, and the screen is
  // never empty in between.
  expect(first).toContain("\u001b[Hone\u001b[K\r\na line tha\u001b[K\r\nthree\u001b[K\u001b[J");
  expect(second).toContain("\u001b[Hshort\u001b[K\u001b[J");
  for (const text of [first, second]) expect(text).not.toContain("\u001b[2J");
  expect(leave).toBe("\u001b[?25h\u001b[?1049l");
  expect(process.listenerCount("exit")).toBe(before);
});

it("truncates lines to the width, ends their colors, and escapes text of clients", () => {
  const part = fc.record({ text: fc.stringMatching(/^[a-z ]*$/), red: fc.boolean() });
  fc.assert(
    fc.property(fc.array(part, { maxLength: 6 }), fc.nat(20), (parts, width) => {
      const line = parts
        .map(({ text, red }) => (red ? styleText("red", text, { validateStream: false }) : text))
        .join("");
      const cut = truncateLine(line, width);
      const plain = stripVTControlCharacters(line);
      expect(stripVTControlCharacters(cut)).toBe(plain.slice(0, width));
      const count = (text: string, mark: string) => text.split(mark).length;
      expect(count(cut, "\u001b[39m")).toBe(count(line, "\u001b[39m"));
    }),
  );
  expect(sanitize("a\u001b[2Jb\r\nc\u202ed\u009be")).toBe("a·[2Jb··c·d·e");
});
