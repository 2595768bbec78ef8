// A middleware that reports how many of the requests since `x-begin` are still in memory.
export const WITNESS = `
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { defineMiddleware } from "tollgate/plugin";

setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc");
const seen = [];

export default defineMiddleware({
  api: 1,
  name: "witness",
  summary: "How many of the finished requests are still in memory",
  sends: "nowhere",
  options: { type: "object", additionalProperties: false, properties: {} },
  setup: () => ({
    admit(x) {
      if (x.headers["x-begin"]) {
        seen.length = 0;
        gc({ type: "major" });
      }
      if (x.headers["x-count"]) {
        const type = x.headers["x-count"] === "all" ? "major" : "minor";
        for (let i = 0; i < 4; i++) gc({ type });
        x.setResponseHeader("x-which", seen.flatMap((ref) => ref.deref()?.headers["x-way"] ?? []).join(" ").slice(0, 2000));
        x.setResponseHeader("x-alive", seen.filter((ref) => ref.deref()).length + " of " + seen.length);
      } else seen.push(new WeakRef(x));
    },
  }),
});
`;
