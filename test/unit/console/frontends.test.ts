// What the playground knows of frontends is held to those that there are: one that comes later is missed here.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { FRONTENDS } from "../../../plugins/observers/console/web/pages/playground-frontends.ts";

const FOLDER = join(import.meta.dirname, "../../../plugins/frontends");

interface Route {
  readonly method: string;
  readonly op?: string;
  readonly name?: string;
  readonly path: string | readonly string[];
}

/** Routes to models, by what they are called. */
async function routesOf(file: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const { default: plugin } = (await import(join(FOLDER, file))) as {
    default?: { setup(options: object, ctx: object): { routes: readonly Route[] } };
  };
  const ctx = {
    shared: (_: string, make: () => unknown) => make(),
    state: {},
    catalogue: {},
    every() {},
    peers() {},
  };
  const found = new Map<string, readonly string[]>();
  for (const { op, name = op!, path } of plugin?.setup({}, ctx).routes ?? [])
    if (op === "generate") found.set(name, [...(found.get(name) ?? []), ...[path].flat()]);
  return found;
}

/** As the host reads a route's path. */
const pattern = (path: string): RegExp =>
  new RegExp(`^${path.replace(/\*\*:\w+/g, ".+").replace(/:\w+/g, "[^/]+")}$`);

it("each frontend that asks a model is in the playground", async () => {
  const draft = { model: "demo/echo", stream: false } as never;
  const asked = Object.values(FRONTENDS).map((one) => one.path(draft));
  const missed: string[] = [];
  let routes = 0;
  for (const file of readdirSync(FOLDER).filter((each) => each.endsWith(".ts")))
    for (const [name, paths] of await routesOf(file)) {
      routes++;
      if (!paths.some((path) => asked.some((one) => pattern(path).test(one))))
        missed.push(`${file}: ${name}`);
    }
  expect(missed).toEqual([]);
  expect(routes).toBeGreaterThanOrEqual(asked.length);
});
