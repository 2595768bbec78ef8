// Registers the checks of the kit as vitest tests. A test file needs two calls.
import { describe, test } from "vitest";
import type { Definition } from "../plugin/define.ts";
import type { Check } from "./check.ts";
import { conformanceChecks, type ConformanceOptions } from "./conformance.ts";
import { hookChecks, type HookCases } from "./hook-tester.ts";
import { liveChecks, type LiveOptions } from "./live-checks.ts";

/**
 * Timeout of a check, in milliseconds. It is long because a check may start processes and gateways,
 * and a machine may be busy.
 */
const CHECK_TIMEOUT_MS = 120_000;

/** Registers every conformance check of a plugin as a separate test. */
export function testConformance(plugin: Definition, options: ConformanceOptions = {}): void {
  registerChecks(`${plugin.name} conforms to the contract`, conformanceChecks(plugin, options));
}

/** Registers every case of a middleware as a separate test. */
export function testHooks(plugin: Definition, cases: HookCases): void {
  registerChecks(`${plugin.name} passes its cases`, hookChecks(plugin, cases));
}

/**
 * Registers the live checks with the provider, within a cost cap, if TOLLGATE_LIVE=1 is set. If it
 * is not set, registers one skipped test.
 */
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
