// The README's table matches the rows. UPDATE_README=1 writes it.
import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ALL_ROWS } from "../../plugins/providers/provider-rows.ts";
import { table } from "./rows-table.ts";

const FILE = new URL("../../plugins/providers/README.md", import.meta.url);
const PLACE = /(<!-- rows -->\n\n)[^]*?(\n\n<!-- end -->)/;

test("the table of backends is current", () => {
  const text = readFileSync(FILE, "utf8");
  const [, head, tail] = PLACE.exec(text) ?? expect.unreachable("no place for the table");
  const written = `${head}${table()}${tail}`;
  if (process.env["UPDATE_README"])
    return writeFileSync(
      FILE,
      text.replace(PLACE, () => written),
    );
  expect(text).toContain(written);
  for (const { name } of ALL_ROWS) expect(text).toContain(`\`${name}\``);
});
