// The style check: no text has a finding, and the check finds an outdated phrase in every place of
// text.
import { describe, expect, it } from "vitest";
import { checkStyle, formatFinding } from "../../.build/style.ts";
import { judge } from "../../.build/style/rules.ts";
import { readSentences, sample, sentencesIn } from "../../.build/style/sentences.ts";
import { findSpelling } from "../../.build/style/spelling.ts";

const findingsIn = (file: string, source: string) => sentencesIn(file, source).flatMap(judge);

describe("the texts of the project", () => {
  it("have no finding; `npm run style` lists them", () => {
    expect(checkStyle().map(formatFinding)).toEqual([]);
  });

  it("covers every place of text", () => {
    const places = new Set(readSentences().map(({ place }) => place));
    for (const place of ["page", "heading", "cell", "comment", "help", "schema", "log", "error"])
      expect(places).toContain(place);
  });
});

describe("the check", () => {
  it.each([
    ["a page", "docs/a.md", "What is cut off is never whole.\n", "page", "headless opener"],
    ["a heading", "docs/a.md", "## What was used\n", "heading", "heading"],
    ["a cell", "docs/a.md", "| key | whose limits stand in the file |\n", "cell", "posture verb"],
    ["a long cell", "docs/a.md", `| ${"word ".repeat(21)}|\n`, "cell", "long cell"],
    ["a comment", "src/a.ts", "// The provider is told of it anew.\n", "comment", "idiom"],
    ["help", "src/cli/a.ts", 'summary: "Show the state folder of a gateway",\n', "help", "term"],
    [
      "a schema",
      "src/config/a.ts",
      'url: text("Its address; absent: the default one"),\n',
      "schema",
      "absent",
    ],
    [
      "a log line",
      "src/a.ts",
      'log.warn({ id }, "The provider is told of it.");\n',
      "log",
      "log line",
    ],
    [
      "an error",
      "src/a.ts",
      'fail("invalid", "It is no list of models.");\n',
      "error",
      "error opening",
    ],
    [
      "another text",
      "src/a.ts",
      'const words = "60 requests a minute for each key";\n',
      "text",
      "rate",
    ],
  ])("finds an outdated phrase in %s, with its line", (_, file, source, place, rule) => {
    const found = findingsIn(file, `\n${source}`);
    expect(found.map((one) => one.rule)).toContain(rule);
    for (const one of found) expect(one).toMatchObject({ file, line: 2, place });
    expect(formatFinding(found[0]!)).toMatch(/^\S+:2 {2}[\w ]+: ".+" → .+$/);
  });

  it.each([
    ["The process ends when the new one is ready.", "missing noun"],
    ["Each plugin has a folder of its own.", "of its own"],
    ["So the request is sent again.", "opening"],
    ["The store remembers the denial of a meter.", "memory verb"],
    ["Returns how many requests were aborted.", "amount"],
    ["Records the call, also if it failed.", "idiom"],
  ])("finds a sentence without a clear subject: %s", (sentence, rule) => {
    expect(findingsIn("src/a.ts", `// ${sentence}\n`)).toMatchObject([{ rule, line: 1 }]);
  });

  it("accepts a noun after its own, and so far", () => {
    const source =
      "// Each key has limits of its own account.\n// So far, no request has failed.\n";
    expect(findingsIn("src/a.ts", source)).toEqual([]);
  });

  it("reads a comment whose line ends in a semicolon", () => {
    const source = "// One gateway migrates at a time;\n// all others wait for the gateway.\n";
    expect(sentencesIn("src/a.ts", source)).toMatchObject([
      { text: "One gateway migrates at a time; all others wait for the gateway." },
    ]);
  });

  it("finds a long sentence, even if it spans several lines", () => {
    const half = "word ".repeat(16);
    expect(findingsIn("docs/a.md", `Some ${half}\n${half}end.\n`)).toMatchObject([
      { rule: "long sentence", line: 1 },
    ]);
    expect(
      findingsIn("src/a.ts", `const a = text(\n  "Some ${half}" +\n    "${half}",\n);\n`),
    ).toMatchObject([{ rule: "long sentence", line: 2, place: "schema" }]);
  });

  it("ignores code, links, and plain English", () => {
    const source = `Set \`what is told\` to 5. See [the guide](docs/at-once.md).

\`\`\`yaml
what: is told at once
\`\`\`

| Key | Meaning |
|---|---|
| \`x\` | Maximum number of requests per minute |
`;
    expect(findingsIn("docs/a.md", source)).toEqual([]);
    expect(findingsIn("src/a.ts", 'log.info({}, "config reloaded in time");\n')).toEqual([]);
  });

  it("knows American spelling and common misspellings", () => {
    const replaced = (text: string) => findSpelling(text).map(({ instead }) => instead);
    expect(replaced("The behaviour is unauthorised, and cancelled.")).toEqual([
      "behavior",
      "unauthoriz" + "ed",
      "canceled",
    ]);
    expect(replaced("It will recieve the the key.")).toEqual(["receive", "the"]);
    expect(
      replaced("The analysis of a specialist is realistic, and its dialog fulfills it."),
    ).toEqual([]);
  });

  it("draws the same sample for the same seed", () => {
    const all = sentencesIn(
      "docs/a.md",
      "One two three four.\n\nFive six seven eight.\n\nA b c d e.\n",
    );
    expect(sample(all, 2, 7)).toEqual(sample(all, 2, 7));
    expect(sample(all, 2, 7)).toHaveLength(2);
  });
});
