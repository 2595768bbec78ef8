// A plugin's unknown members are rejected when it is mounted, with the probable name.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HOOK_COMBINATIONS, type Definition } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { startTestGateway } from "tollgate/testing";
import { builtin } from "../../../plugins/index.ts";
import { setUpStore } from "../../../src/runtime/ledger/open-store.ts";
import { LifetimeScope } from "../../../src/lib/lifetime-scope.ts";
import {
  DEFINITION_MEMBERS,
  SETUP_RESULT_MEMBERS,
  findUnknownMember,
  findUnknownSetupMember,
} from "../../../src/plugin/known-members.ts";

const chat = {
  "~tollgate": "frontend",
  api: 1,
  name: "chat",
  summary: "",
  setup: () => ({
    protocol: chatCompletions(),
    routes: [{ method: "POST", path: "/chat", actionType: "generate" }],
  }),
} as unknown as Definition;
const endpoint = { protocol: chatCompletions(), base: "http://127.0.0.1:9", auth: "none" };
const plugin = (kind: string, made: object): Definition =>
  ({
    "~tollgate": kind,
    api: 1,
    name: "acme",
    summary: "",
    ...(kind === "middleware" && { sends: "nowhere" }),
    setup: () => made,
  }) as unknown as Definition;

const mounted = async (kind: string, made: object): Promise<string> => {
  const yaml = {
    middleware: "frontends: [chat]\nmiddleware: [door, acme]",
    provider: "frontends: [chat]\nproviders: { acme: {} }",
    frontend: "frontends: [acme]",
  }[kind]!;
  try {
    await using _ = await startTestGateway({ plugins: { chat, acme: plugin(kind, made) }, yaml });
    return "";
  } catch (error) {
    return (error as Error).message;
  }
};

describe("a member of a middleware with a wrong type", () => {
  it.each<[string, object, RegExp]>([
    ["a text", { needsFirstKey: "yes" }, /needsFirstKey must be true or false/],
    ["a number", { needsFirstKey: 1 }, /needsFirstKey must be true or false/],
    ["a hook that is no function", { admit: "yes" }, /its admit hook must be a function/],
    ["a hook that is an object", { settle: {} }, /its settle hook must be a function/],
  ])("is rejected, with the line of the plugin: %s", async (_, made, message) => {
    const problem = await mounted("middleware", made);
    expect(problem).toMatch(message);
    expect(problem).toMatch(/^middleware\.acme: |\nmiddleware\.acme: |\/middleware\/1/);
  });

  it("is not a member that is undefined", async () => {
    expect(await mounted("middleware", { needsFirstKey: undefined, admit: undefined })).toBe("");
  });
});

describe("an unknown member", () => {
  it.each<[string, object, RegExp]>([
    [
      "middleware",
      { rewirte: (r: unknown) => r },
      /unknown hook "rewirte".*did you mean "rewrite"/s,
    ],
    ["middleware", { onRequest() {} }, /unknown hook "onRequest"/s],
    [
      "middleware",
      new (class {
        atempt() {}
      })(),
      /"atempt".*did you mean "attempt"/s,
    ],
    [
      "provider",
      { endpoints: [endpoint], listModles: async () => [] },
      /"listModles".*did you mean "listModels"/s,
    ],
    [
      "provider",
      { endpoints: [{ ...endpoint, prepair() {} }] },
      /member of an endpoint "prepair".*did you mean "prepare"/s,
    ],
    [
      "frontend",
      {
        routes: [
          { method: "GET", path: "/a", handle: () => ({ status: 200 }), alowUnauthenticated: true },
        ],
      },
      /member of a route "alowUnauthenticated".*did you mean "allowUnauthenticated"/s,
    ],
    [
      "frontend",
      { routes: [], extractCredentail: () => "x" },
      /"extractCredentail".*did you mean "extractCredential"/s,
    ],
  ])("of a %s is rejected: %#", async (kind, made, message) =>
    expect(await mounted(kind, made)).toMatch(message),
  );

  it("of a later contract, or of a class itself, does not stop a plugin", async () => {
    expect(
      await mounted("provider", { endpoints: [{ ...endpoint, warmth: 3 }], embeddings: {} }),
    ).toBe("");
    expect(
      await mounted(
        "middleware",
        new (class {
          admit() {}
          #a = 1;
          countTokens() {
            return this.#a;
          }
        })(),
      ),
    ).toBe("");
  });

  it("of a store is rejected before it is opened", async () => {
    const made = { opne: async () => {}, apply: async () => [] };
    const store = { definition: plugin("store", made), options: {}, use: "./mine.ts" };
    const ground = { log: { child() {} } };
    await expect(
      setUpStore(
        { store, file: "/gateway.yaml", bounds: {} } as never,
        ground as never,
        new LifetimeScope(),
      ),
    ).rejects.toThrow(/"opne".*did you mean "open"/);
  });

  it("similar to a hook is rejected with the hook's name", () => {
    const hooks = Object.keys(HOOK_COMBINATIONS);
    expect([...hooks, "commands", "needsFirstKey", "routes"].sort()).toEqual(
      Object.keys(SETUP_RESULT_MEMBERS.middleware).sort(),
    );
    fc.assert(
      fc.property(fc.constantFrom(...hooks), fc.nat(), fc.nat(3), (hook, at, how) => {
        const i = at % (hook.length - 1);
        const slip = [
          hook.slice(0, i) + hook[i + 1] + hook[i] + hook.slice(i + 2),
          hook.slice(0, i) + hook.slice(i + 1),
          hook.slice(0, i) + hook[i] + hook.slice(i),
          `${hook.slice(0, i)}x${hook.slice(i + 1)}`,
        ][how]!;
        fc.pre(!hooks.includes(slip));
        expect(findUnknownSetupMember("middleware", { [slip]() {} })).toMatchObject({ name: slip });
      }),
    );
  });

  it("does not occur in any built-in plugin", async () => {
    for (const [kind, all] of Object.entries(builtin))
      for (const [name, load] of Object.entries(all)) {
        const { default: definition } = (await load()) as { default: object };
        expect(
          findUnknownMember(
            definition,
            DEFINITION_MEMBERS[kind as keyof typeof DEFINITION_MEMBERS],
          ),
          name,
        ).toBeUndefined();
      }
  });
});
