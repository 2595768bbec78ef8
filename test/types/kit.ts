// What a test of a plugin writes with the kit: what must compile and, below `@ts-expect-error`, what must not.
import { defineObserver } from "tollgate/plugin";
import { gateway, type GatewayOf, type TestGateway } from "tollgate/testing";

const own = defineObserver({
  api: 1,
  name: "own",
  summary: "Counts",
  sends: "nowhere",
  setup: () => ({}),
});

// What comes with Tollgate needs no plugin of the test's own.
export const bare: GatewayOf = { yaml: "frontends: [chat-completions]" };
export const both: GatewayOf = { yaml: "observers: [own]", plugins: { own }, env: { KEY: "k" } };
export const started = (): Promise<TestGateway> => gateway(both);

// @ts-expect-error  no gateway without a config
export const silent: GatewayOf = { plugins: { own } };
// @ts-expect-error  a plugin is what a define… has made
export const unmade: GatewayOf = { yaml: "", plugins: { own: { api: 1, name: "own" } } };
