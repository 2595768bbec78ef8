// Names and labels never control the terminal on which they are printed.
import fc from "fast-check";
import { expect, it } from "vitest";
import { csvLine } from "../../src/cli/format/reports/csv.ts";
import { toPrintable } from "../../src/cli/format/terminal.ts";
import { COMMAND_SPECS } from "../../src/admin/schema/command-specs.ts";
import { validateInput } from "../../src/admin/dispatch/command-input.ts";

const COLORS = new RegExp(`${String.fromCharCode(27)}\\[[\\d;]*m`, "g");
/** C0, C1, line and paragraph separators, and changes of the writing direction. */
const UNSAFE = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u;
const codes = Array.from({ length: 0x2070 }, (_, i) => String.fromCharCode(i));
const unsafe = codes.filter((c) => UNSAFE.test(c));

const text = fc.string({
  unit: fc.constantFrom(...unsafe, "a", "é", "[31m", "]0;t", ",", '"'),
  maxLength: 12,
});

it("in messages", () => {
  fc.assert(
    fc.property(text, (said) => {
      expect(toPrintable(said, false).replace(/[\n\t]/g, "")).not.toMatch(UNSAFE);
      // With colors, only color codes remain.
      const colored = toPrintable(said, true).replace(COLORS, "");
      expect(colored.replace(/[\n\t]/g, "")).not.toMatch(UNSAFE);
    }),
  );
});

it("in a spreadsheet table, except for line ends", () => {
  fc.assert(
    fc.property(fc.array(text, { minLength: 1 }), (cells) => {
      const line = csvLine(cells);
      expect(line.endsWith("\r\n")).toBe(true);
      expect(line.slice(0, -2)).not.toMatch(UNSAFE);
    }),
  );
});

const NAMED = [
  ["keys.create", {}],
  ["accounts.create", { id: "a" }],
  ["admins.create", { role: "viewer" }],
] as const;

it.each(NAMED)("in a name that %s accepts", (command, more) => {
  const accepted = (name: string) =>
    validateInput(COMMAND_SPECS[command].input as never, { ...more, name } as never);
  expect(accepted("Ann’s key, 中文 😀")).toMatchObject({ name: "Ann’s key, 中文 😀" });
  for (const c of unsafe) expect(() => accepted(`a${c}b`), JSON.stringify(c)).toThrow(/printable/);
});
