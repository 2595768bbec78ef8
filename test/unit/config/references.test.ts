import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkModels, findPattern } from "../../../src/config/name-references.ts";

const check = (
  models: Record<string, unknown>,
  providers = ["demo"],
  unmounted: string[] = [],
  clientProviders: string[] = [],
) => {
  const said: string[] = [];
  const names = {
    providers,
    clientProviders,
    unmountedProviders: new Map(unmounted.map((name) => [name, "why"])),
  };
  checkModels(models, names, (words, pointer) => said.push(`${words.id} ${pointer}`));
  return said;
};

describe("aliases", () => {
  const key = fc.constantFrom("a", "b", "c", "d", "e");
  const models = fc.dictionary(key, fc.array(key, { minLength: 1, maxLength: 3 }));
  it("are rejected exactly if they are circular", () => {
    fc.assert(
      fc.property(models, (given) => {
        const known = Object.fromEntries(
          Object.entries(given).map(([k, list]) => [
            k,
            list.map((each) => (each in given ? each : "demo/x")),
          ]),
        );
        // Five names: a chain of six steps has visited one of them twice.
        const ends = (name: string, steps: number): boolean =>
          steps < 6 && known[name]!.every((next) => !(next in known) || ends(next, steps + 1));
        const circular = Object.keys(known).some((name) => !ends(name, 0));
        expect(check(known).some((said) => said.startsWith("config/alias-cycle"))).toBe(circular);
      }),
    );
  });
  it("a pattern is resolved like any other name", () => {
    expect(check({ "a-*": ["b-*"], "b-*": ["a-*"] })).toHaveLength(1);
    expect(check({ "a-*": ["b-*"], "b-*": ["demo/*"], x: "a-1" })).toEqual([]);
    expect(check({ x: "claude-opus", "claude-*": ["demo/claude-*"] })).toEqual([]);
  });
});

describe("providers with credential: client", () => {
  const checkClients = (models: Record<string, unknown>) =>
    check(models, ["demo", "max", "codex"], [], ["max", "codex"]);
  it("are found behind aliases, each of which is resolved once", () => {
    const chain = (last: string) => ({
      ...Object.fromEntries(
        Array.from({ length: 60 }, (_, i) => [`m${i}`, [`m${i + 1}`, `m${i + 2}`]]),
      ),
      m60: "demo/echo",
      m61: last,
    });
    expect(checkClients(chain("demo/echo"))).toEqual([]);
    expect(checkClients({ ...chain("max/claude"), x: ["codex/gpt", "m0"] })).toEqual([
      "config/client-credential /models/x/1",
    ]);
  });
  it("are found in a circle of aliases", () =>
    expect(checkClients({ a: ["b", "max/claude"], b: ["a", "codex/gpt"] })).toEqual([
      "config/client-credential /models/b/1",
      "config/alias-cycle /models/b/0",
    ]));
});

describe("candidates", () => {
  it.each([
    [{ x: "demo/any/thing:[1m]" }, []],
    [{ x: "nobody/y" }, ["config/unknown-provider /models/x"]],
    [{ x: ["y"] }, ["config/unknown-model /models/x/0"]],
    [{ x: "/y" }, ["config/unknown-model /models/x"]],
    [{ x: "off/y" }, ["config/unmounted-model /models/x"]],
    [
      { x: { candidates: ["off/y", "demo/y"] } },
      ["config/unmounted-candidate /models/x/candidates/0"],
    ],
    [{ x: "demo/*" }, ["config/star-without-match /models/x"]],
    [{ "demo/x": "demo/y", "off/*": "demo/z" }, []],
    [{ "demo/x*": "demo/y" }, ["config/unreachable-model /models/demo~1x*"]],
    [{ x: 7, y: [8, null], z: { candidates: "demo/x" } }, []],
  ])("%j", (models, said) => expect(check(models, ["demo", "off"], ["off"])).toEqual(said));
});

it("the longest matching pattern is selected", () => {
  const part = fc.stringMatching(/^[ab-]{0,4}$/);
  const pattern = fc.tuple(part, part).map(([before, after]) => `${before}*${after}`);
  fc.assert(
    fc.property(fc.array(pattern), fc.stringMatching(/^[ab-]{0,8}$/), (patterns, name) => {
      const matches = patterns.filter((p) => new RegExp(`^${p.replace("*", ".*")}$`).test(name));
      const meant = findPattern(name, patterns);
      if (matches.length === 0) expect(meant).toBeUndefined();
      else {
        expect(matches).toContain(meant);
        expect(meant!.length).toBe(Math.max(...matches.map((p) => p.length)));
      }
    }),
  );
});
