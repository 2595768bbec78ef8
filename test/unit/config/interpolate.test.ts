import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import {
  escapeTemplate,
  fillTemplate,
  isTemplate,
  parseTemplate,
  type TemplatePart,
} from "../../../src/config/source/interpolate.ts";
import { loadConfig } from "../../../src/config/load-config.ts";
import { load } from "./stubs.ts";
import { trialCount } from "../../kit/law-effort.ts";

const filled = (text: string, env: Record<string, string | undefined> = {}) => {
  const { parts, flaws } = parseTemplate(text);
  const result = fillTemplate(parts, "/x/gateway.yaml", { env, files: new Map() });
  return { text: result.text, flaws: [...flaws, ...result.flaws].map((f) => f.words.id) };
};

/** Text similar to a reference. */
const tricky = fc
  .array(fc.constantFrom("$", "{", "}", "${", "$${", "env:", "file:", "A", ":-", "x", " "), {
    maxLength: 12,
  })
  .map((parts) => parts.join(""));
const name = fc.stringMatching(/^[A-Z_][A-Z0-9_]{0,8}$/);

describe("round trip", () => {
  it("escaped text is literal", () => {
    fc.assert(
      fc.property(fc.oneof(tricky, fc.string()), (text) => {
        expect(filled(escapeTemplate(text))).toEqual({ text, flaws: [] });
      }),
    );
  });
  it("every template returns its parts as written", () => {
    fc.assert(
      fc.property(tricky, (text) => {
        const { parts, flaws } = parseTemplate(text);
        const again = (part: TemplatePart) =>
          part.kind === "text" ? escapeTemplate(part.text) : part.raw;
        if (flaws.length === 0)
          expect(parseTemplate(parts.map(again).join("")).parts).toEqual(parts);
      }),
    );
  });
  it("text around references is unchanged, and a value is not interpolated again", () => {
    fc.assert(
      fc.property(tricky, name, tricky, tricky, (before, variable, value, after) => {
        const text = `${escapeTemplate(before)}\${env:${variable}}${escapeTemplate(after)}`;
        // A "$" before "${" makes it a literal.
        fc.pre(!before.endsWith("$"));
        expect(filled(text, { [variable]: value })).toEqual({
          text: before + value + after,
          flaws: [],
        });
      }),
    );
  });
});

describe("values cannot change the structure", () => {
  it("the value of a variable is one string where it is referenced", async () => {
    const yamlish = fc
      .array(
        fc.constantFrom(
          "\n",
          ": ",
          "- ",
          "{",
          "}",
          "[",
          "]",
          "&a ",
          "*a",
          "!!int ",
          "#",
          '"',
          "'",
          "${env:B}",
          "use: evil",
          "true",
          "12",
        ),
        { maxLength: 10 },
      )
      .map((parts) => parts.join(""));
    await fc.assert(
      fc.asyncProperty(yamlish, yamlish, async (value, other) => {
        const text = stringify({
          store: "sqlite",
          middleware: [],
          frontends: [],
          providers: { openai: { with: { api_key: "${env:A}", label: "x ${env:A}${env:B} y" } } },
        });
        const env = { A: value, B: other };
        const { config, problems } = await loadConfig("/x/gateway.yaml", {
          env,
          loadPlugin: load,
          textOverride: text,
        });
        if (value === "") return void expect(problems[0]?.id).toBe("config/bad-value");
        expect(problems).toEqual([]);
        const provider = config!.providers.get("openai")!;
        expect(provider.credentials[0]!.fields).toEqual({ api_key: value });
        expect(provider.options).toEqual({ label: `x ${value}${other} y`, region: "us" });
        expect([...config!.providers.keys()]).toEqual(["openai"]);
      }),
      { numRuns: trialCount(60) },
    );
  });
});

describe("env", () => {
  it.each([
    ["${env:A}", { A: "1" }, "1", []],
    ["${env:A}", { A: "" }, "", []],
    ["${env:A}", {}, "", ["config/unset-variable"]],
    ["${env:A:-}", {}, "", []],
    ["${env:A:-b}", { A: "" }, "b", []],
    ["${env:A:-b}", { A: "a" }, "a", []],
    ["${env:A:-b:-c}", {}, "b:-c", []],
    ["${env:A:-http://x}", {}, "http://x", []],
    ["${env:toString}", {}, "", ["config/unset-variable"]],
    ["${env:constructor:-no}", {}, "no", []],
    ["$${env:A}", {}, "${env:A}", []],
    ["$$${env:A}", {}, "$${env:A}", []],
    ["$A {x} $", {}, "$A {x} $", []],
    ["${A}", {}, "", ["config/bare-variable"]],
    ["${A:-x}", {}, "", ["config/bare-variable"]],
    ["${env:A", { A: "1" }, "", ["config/unclosed-reference"]],
    ["${env:}", {}, "", ["config/bad-variable"]],
    ["${env:A B}", {}, "", ["config/bad-variable"]],
    ["${file:}", {}, "", ["config/bad-reference"]],
    ["${}", {}, "", ["config/bad-reference"]],
    ["${ENV:A}", {}, "", ["config/bad-reference"]],
    ["${A}${B}", {}, "", ["config/bare-variable", "config/bare-variable"]],
  ])("%s with %j", (text, env, expected, flaws) =>
    expect(filled(text, env)).toEqual({ text: expected, flaws }),
  );
});

it("plain text is not a template", () =>
  expect(["a", "$a", "{}", "$ {"].some(isTemplate)).toBe(false));
