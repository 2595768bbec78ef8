// A member of the contract that is to go: its plugin works as it did, and is told with the line to write instead.
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Definition } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { startTestGateway } from "tollgate/testing";
import { loadConfig } from "../../../src/config/load-config.ts";
import {
  DEPRECATED,
  findDeprecated,
  findDeprecatedInSetupResult,
  type DeprecatedMember,
} from "../../../src/plugin/deprecated.ts";
import { load } from "../config/stubs.ts";

const PLANTED: readonly DeprecatedMember[] = [
  {
    kind: "provider",
    part: "definition",
    member: "region",
    since: "0.3",
    replacement: "options.region",
  },
  {
    kind: "provider",
    part: "made",
    member: "list",
    since: "0.3",
    replacement: "models: () => list",
  },
  { part: "endpoint", member: "url", since: "0.3", replacement: "base: url" },
  { part: "route", member: "verb", since: "0.3", replacement: "method: verb" },
];
const table = DEPRECATED as DeprecatedMember[];
beforeEach(() => void table.push(...PLANTED));
afterEach(() => void table.splice(table.length - PLANTED.length));

const definition = {
  "~tollgate": "provider",
  api: 1,
  name: "old",
  summary: "Old",
  region: "eu",
  setup: () => ({}),
};

it("in a definition: a warning at its line, and it is mounted", async () => {
  const { config, problems } = await loadConfig("/etc/tollgate/gateway.yaml", {
    env: {},
    textOverride: "providers:\n  demo: {}\n  old: { use: ./old.ts }\n",
    loadPlugin: async (use, ...rest) =>
      use === "./old.ts" ? { definition, from: "/etc/tollgate/old.ts" } : load(use, ...rest),
  });
  expect(config?.providers.has("old")).toBe(true);
  expect(problems.filter(({ id }) => id === "plugin/deprecated-member")).toEqual([
    expect.objectContaining({
      severity: "warning",
      line: 3,
      message: '/etc/tollgate/old.ts has "region", which is to go (since 0.3)',
      hint: "write options.region",
    }),
  ]);
});

it("in what a setup gave: once, however often it stands there", async () => {
  const endpoint = { protocol: chatCompletions(), base: "http://127.0.0.1:9", url: "x" };
  const made = { list: [], endpoints: [endpoint, { ...endpoint }] };
  const acme = { ...definition, setup: () => made } as unknown as Definition;
  await using running = await startTestGateway({
    plugins: { acme },
    yaml: "frontends: [chat-completions]\nproviders: { acme: {} }",
  });
  const told = running.logs.filter(
    ({ fields }) => (fields as { id?: string }).id === "plugin/deprecated-member",
  );
  expect(told.map(({ level, message }) => [level, message])).toEqual([
    [
      "warn",
      'providers.acme: test has "region", which is to go (since 0.3) — write options.region',
    ],
    [
      "warn",
      'providers.acme: test has "list", which is to go (since 0.3) — write models: () => list',
    ],
    ["warn", 'providers.acme: test has "url", which is to go (since 0.3) — write base: url'],
  ]);
});

it("is another kind's own affair, and what has none is told nothing", () => {
  expect(findDeprecated("frontend", "definition", definition)).toEqual([]);
  expect(findDeprecatedInSetupResult("frontend", { routes: [{ verb: "GET" }], list: [] })).toEqual([
    PLANTED[3],
  ]);
  expect(findDeprecatedInSetupResult("provider", { endpoints: [] })).toEqual([]);
});
