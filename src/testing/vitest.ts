// The checks of the kit as tests of vitest, for authors who use it: two calls in a test file, and the runner says the rest.
import { describe, test } from "vitest";
import type { Definition } from "../plugin/define.ts";
import type { Check } from "./check.ts";
import { conformanceChecks, type ConformanceOptions } from "./conformance.ts";
import { hookChecks, type HookCases } from "./hook-tester.ts";
import { liveChecks, type LiveOptions } from "./live-checks.ts";

/** A check may start processes and gateways: on a machine with other work that takes its time. */
const CHECK_TIMEOUT_MS = 120_000;

/** Every law of the contract that this plugin has to keep, each as a test of its own. */
export function testConformance(plugin: Definition, options: ConformanceOptions = {}): void {
  registerChecks(`${plugin.name} keeps the contract`, conformanceChecks(plugin, options));
}

/** A table of cases of a middleware, each as a test of its own. */
export function testHooks(plugin: Definition, cases: HookCases): void {
  registerChecks(`${plugin.name} does what its cases say`, hookChecks(plugin, cases));
}

/** With TOLLGATE_LIVE=1: the laws over what the provider says now, within a cap. Otherwise one test that is skipped. */
export function testLive(plugin: Definition, options: LiveOptions): void {
  const checks = liveChecks(plugin, options);
  if (checks.length > 0) registerChecks(`${plugin.name}, live`, checks);
  else test.skip(`${plugin.name}, live: TOLLGATE_LIVE is not 1`, () => {});
}

function registerChecks(title: string, checks: readonly Check[]): void {
  describe(title, () => {
    for (const { name, run } of checks) test(name, run, CHECK_TIMEOUT_MS);
  });
}
