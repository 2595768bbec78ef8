// Compares gateways with and without a middleware: an isolated one, and one that watches responses,
// of this model or another.
import { tollgate, type Target } from "../targets.ts";

const PLUGINS = {
  "inspects.ts": `export default { "~tollgate": "middleware", api: 1, name: "inspects", summary: "Looks at what is asked",
  sends: "nowhere", setup: () => ({ inspect() {} }) };\n`,
  "watches.ts": `export default { "~tollgate": "middleware", api: 1, name: "watches", summary: "Looks at what is answered",
  sends: "nowhere", setup: () => ({ watch() {
    let bytes = 0;
    return (event) => { if (event.type === "delta") bytes += event.text.length; };
  } }) };\n`,
};

const gate = (mock: number, name: string, middleware?: string): Promise<Target> =>
  tollgate(mock, { name, ...(middleware !== undefined && { middleware, files: PLUGINS }) });

export const NO_HOOK = "no hook";

/** Cost of a call to another process, compared with the same hook in this process. */
export const asking = async (mock: number): Promise<readonly Target[]> => [
  await gate(mock, NO_HOOK),
  await gate(mock, "inspect here", "{ use: ./inspects.ts }"),
  await gate(mock, "inspect in a child", "{ use: ./inspects.ts, isolate: child }"),
];

/** Cost of watching a response, and cost of a watcher for other models. */
export const watching = async (mock: number): Promise<readonly Target[]> => [
  await gate(mock, NO_HOOK),
  await gate(mock, "watch", "{ use: ./watches.ts }"),
  await gate(mock, "watch elsewhere", '{ use: ./watches.ts, for: { models: ["an/*"] } }'),
];
