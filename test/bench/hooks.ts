// Middlewares in use beside none: one that is asked in a process of its own, and one that watches answers, here and elsewhere.
import { tollgate, type Target } from "./targets.ts";

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

/** What a question to another process costs, beside the same hook in this one. */
export const asking = async (mock: number): Promise<readonly Target[]> => [
  await gate(mock, NO_HOOK),
  await gate(mock, "inspect here", "{ use: ./inspects.ts }"),
  await gate(mock, "inspect in a child", "{ use: ./inspects.ts, isolate: child }"),
];

/** What it costs to look at an answer, and what it costs where none looks at this one. */
export const watching = async (mock: number): Promise<readonly Target[]> => [
  await gate(mock, NO_HOOK),
  await gate(mock, "watch", "{ use: ./watches.ts }"),
  await gate(mock, "watch elsewhere", '{ use: ./watches.ts, for: { models: ["an/*"] } }'),
];
