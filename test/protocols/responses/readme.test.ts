// The README's tables are what the codecs do. UPDATE_README=1 writes them anew.
import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { fromResponses, toResponses } from "./verdicts.ts";

const FILE = new URL("../../../src/protocols/README.md", import.meta.url);

test.each([
  ["to responses", toResponses],
  ["from responses", fromResponses],
])("the table %s", (name, table) => {
  const text = readFileSync(FILE, "utf8");
  const place = new RegExp(`(<!-- verdicts ${name} -->\n\n)[^]*?(\n\n<!-- end -->)`);
  const [, head, tail] = place.exec(text) ?? expect.unreachable(`no place for ${name}`);
  if (process.env["UPDATE_README"])
    writeFileSync(
      FILE,
      text.replace(place, () => `${head}${table()}${tail}`),
    );
  else expect(text).toContain(`${head}${table()}${tail}`);
});
