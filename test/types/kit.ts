// What a test of a plugin writes with the kit: what must compile and, below `@ts-expect-error`, what must not.
import { defineObserver, type Store } from "tollgate/plugin";
import {
  fleetChecks,
  startTestGateway,
  type FleetUnderTest,
  type TestGatewayOptions,
  type TestGateway,
} from "tollgate/testing";

const own = defineObserver({
  api: 1,
  name: "own",
  summary: "Counts",
  sends: "nowhere",
  setup: () => ({}),
});

// What comes with Tollgate needs no plugin of the test's own.
export const bare: TestGatewayOptions = { yaml: "frontends: [chat-completions]" };
export const both: TestGatewayOptions = {
  yaml: "observers: [own]",
  plugins: { own },
  env: { KEY: "k" },
};
export const started = (): Promise<TestGateway> => startTestGateway(both);

// @ts-expect-error  no gateway without a config
export const silent: TestGatewayOptions = { plugins: { own } };
// @ts-expect-error  a plugin is what a define… has made
export const unmade: TestGatewayOptions = { yaml: "", plugins: { own: { api: 1, name: "own" } } };

// ── several instances of one store ──
declare const store: Store;
export const laws = fleetChecks(async () => ({ stores: [store], dispose: async () => {} }));
export const several: FleetUnderTest = {
  stores: [store, store, store],
  usesOwnClock: true,
  expireLease: async (instance) => void instance.length,
  disconnect: async () => {},
  reconnect: async () => {},
  dispose: async () => {},
};
// @ts-expect-error  what was made is ended
export const leaky: FleetUnderTest = { stores: [] };
// @ts-expect-error  whose lease is over has to be said by its name
export const grave: Pick<FleetUnderTest, "expireLease"> = { expireLease: async (_: number) => {} };
