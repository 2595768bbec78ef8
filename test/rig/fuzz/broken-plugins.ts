// Defective plugins that the rig must find: each does its damage on one input of many.

const ONE_OF = 10;

const plugin = (hook: string, harm: string) => `
import { openSync } from "node:fs";
import { defineMiddleware } from "tollgate/plugin";
const kept = [];
let calls = 0;
const spent = () => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};
export default defineMiddleware({
  api: 1, name: "planted", summary: "Does harm now and then", sends: "nowhere",
  setup: () => ({ ${hook}(x) { if (${harm.startsWith("throw") ? "JSON.stringify(x.body).length" : "calls++"} % ${ONE_OF} === 0) { ${harm} } } }),
});
`;

export const PLANTED = {
  throws: plugin("rewrite", 'throw new TypeError("planted");'),
  // In CPU time, which counts as blocking.
  holds: plugin(
    "settle",
    "if (calls > 150 && !kept.length) for (const end = spent() + 300, _ = kept.push(0); spent() < end; ) void 0;",
  ),
  opens: plugin("settle", 'for (let i = 0; i < 60; i++) openSync("/dev/null");'),
  keeps: plugin("settle", "kept.push(new Array(2_000_000).fill(calls));"),
} as const;
export type Planted = keyof typeof PLANTED;
