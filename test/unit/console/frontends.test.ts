// The playground's frontends equal the existing ones: a new one is detected here.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import {
  defaultModelOf,
  FRONTENDS,
  availableFrontends,
} from "../../../plugins/observers/console/web/pages/playground/playground-operations.ts";

const FOLDER = join(import.meta.dirname, "../../../plugins/frontends");
/** Frontends that have no route to a model, and that cannot be created without options and a store. */
const WITHOUT_MODELS = ["claude-gateway.ts", "jobs.ts", "mcp.ts"];
const FILES = readdirSync(FOLDER).filter(
  (each) => each.endsWith(".ts") && !WITHOUT_MODELS.includes(each),
);

interface Route {
  readonly method: string;
  readonly actionType?: string;
  readonly action?: string;
  readonly path: string | readonly string[];
}

/** Routes to models, by name. */
async function routesOf(file: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const { default: plugin } = (await import(join(FOLDER, file))) as {
    default?: { setup(options: object, ctx: object): { routes: readonly Route[] } };
  };
  const ctx = {
    shared: (_: string, make: () => unknown) => make(),
    state: {},
    catalog: {},
    runEvery() {},
    createPeerQuery() {},
  };
  const found = new Map<string, readonly string[]>();
  for (const { actionType, action = actionType!, path } of plugin?.setup({}, ctx).routes ?? [])
    if (actionType === "generate")
      found.set(action, [...(found.get(action) ?? []), ...[path].flat()]);
  return found;
}

const DRAFT = { model: "demo/echo", stream: false } as never;

/** As the host parses a route's path. */
const pattern = (path: string): RegExp =>
  new RegExp(`^${path.replace(/\*\*:\w+/g, ".+").replace(/:\w+/g, "[^/]+")}$`);

it("each frontend that calls a model is in the playground", async () => {
  const asked = Object.values(FRONTENDS).map((one) => one.path(DRAFT));
  const missed: string[] = [];
  let routes = 0;
  for (const file of FILES)
    for (const [name, paths] of await routesOf(file)) {
      routes++;
      if (!paths.some((path) => asked.some((one) => pattern(path).test(one))))
        missed.push(`${file}: ${name}`);
    }
  expect(missed).toEqual([]);
  expect(routes).toBeGreaterThanOrEqual(asked.length);
});

it("the playground offers exactly the frontends that are mounted", async () => {
  const found: string[] = [];
  for (const file of FILES) {
    const paths = [...(await routesOf(file)).values()].flat();
    const words = availableFrontends([{ name: file, paths }]);
    for (const word of words)
      expect(
        paths.some((path) => pattern(path).test(FRONTENDS[word]!.path(DRAFT).split("?")[0]!)),
      ).toBe(true);
    found.push(...words);
  }
  expect(found.toSorted()).toEqual(Object.keys(FRONTENDS).toSorted());
  expect(availableFrontends([])).toEqual([]);
});

it("the playground starts with an available model, or with none", () => {
  for (const frontend of Object.values(FRONTENDS))
    for (const ids of [[], ["acme/one"], ["acme/one", frontend.defaultModel]])
      expect([...ids, ""]).toContain(defaultModelOf(frontend, ids));
  expect(defaultModelOf(FRONTENDS["chat"]!, ["acme/one"])).toBe("acme/one");
  expect(defaultModelOf(FRONTENDS["chat"]!, ["acme/one", "demo/echo"])).toBe("demo/echo");
});
