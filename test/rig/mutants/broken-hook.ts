// A middleware with a hook that is broken as its options state. gateway.yaml restricts it to a
// model of its own.
import { defineMiddleware, type Hooks } from "tollgate/plugin";

const mistake = (): never => {
  throw new TypeError("a mistake in a plugin");
};

const WAYS: { readonly [how: string]: Hooks } = {
  throws: { rewrite: mistake },
  hangs: { inspect: () => new Promise(() => {}) },
  garbage: { charge: () => ({ limits: "none" }) as never },
  midway: {
    event: () => (event) => {
      if (event.type === "delta") mistake();
    },
  },
  watching: { watch: () => () => mistake() },
};

export default defineMiddleware({
  api: 1,
  name: "broken-hook",
  summary: "Broken in the way that its options say",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    required: ["how"],
    properties: { how: { enum: Object.keys(WAYS), description: "What it does wrong" } },
  },
  setup: ({ how }) => WAYS[how as string]!,
});
