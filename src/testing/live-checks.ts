// Checks that call the real provider, which costs money. They run only if TOLLGATE_LIVE=1 is set,
// and never exceed a cost cap.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Operation } from "../model/request.ts";
import type { Definition } from "../plugin/define.ts";
import type { Protocol } from "../plugin/protocol.ts";
import type { Provider } from "../plugin/provider.ts";
import { createCheck, type Check } from "./check.ts";
import { isProtocolEndpoint } from "./conformance/operation.ts";
import { createTestContext } from "./context.ts";
import { protocolChecks } from "./protocol-laws.ts";
import { recordProvider, writeRecordings, type RecordingOptions } from "./record-provider.ts";
import { readRecordings } from "./recording.ts";

/** Options for checks against a real provider. */
export interface LiveOptions extends RecordingOptions {
  /**
   * Price in dollars per million tokens. It is required to enforce the cost cap. If it is missing,
   * nothing is sent.
   */
  readonly price: { readonly input: number; readonly output: number };
  /** Maximum total cost, in dollars. Default: 0.05. */
  readonly capUsd?: number;
}

/**
 * Input tokens of a request with a few words. An upper estimate that covers every provider's way of
 * counting.
 */
const ESTIMATED_INPUT_TOKENS = 200;
const DEFAULT_MAX_TOKENS = 64;

/** Returns the maximum cost of one run, in dollars: every endpoint, streamed and non-streaming. */
const maxCostUsd = (
  { price, maxTokens = DEFAULT_MAX_TOKENS }: LiveOptions,
  requests: number,
): number =>
  (requests * (ESTIMATED_INPUT_TOKENS * price.input + maxTokens * price.output)) / 1_000_000;

/**
 * Returns the live checks, or none unless TOLLGATE_LIVE is 1. If the run could cost more than the
 * cap, it fails before a request is sent.
 */
export function liveChecks(definition: Definition, of: LiveOptions): Check[] {
  if (process.env["TOLLGATE_LIVE"] !== "1" || definition["~tollgate"] !== "provider") return [];
  return [liveCheck(definition, of)];
}

/** Returns the live check regardless of the variable, for the command's `--live` option. */
export function liveCheck(definition: Definition, of: LiveOptions): Check {
  return createCheck(`${definition.name}: live: current responses pass the checks`, async () => {
    await using lent = createTestContext({ ...(of.fetch && { fetch: of.fetch as never }) });
    const made = (await definition.setup((of.with ?? {}) as never, lent.ctx)) as Provider;
    const most = maxCostUsd(of, 2 * made.endpoints.length);
    const cap = of.capUsd ?? 0.05;
    assert.ok(most <= cap, `the call could cost ${most.toFixed(4)} USD, but capUsd is ${cap}`);
    const folder = mkdtempSync(join(tmpdir(), "tollgate-live-"));
    try {
      const exchanges = await recordProvider(definition, { maxTokens: DEFAULT_MAX_TOKENS, ...of });
      assert.ok(exchanges.length > 0, "no endpoint serves this model");
      for (const { name, status } of exchanges)
        assert.ok(status < 300, `${name}: the provider returned status ${status}`);
      writeRecordings(exchanges, folder);
      for (const endpoint of made.endpoints.filter(isProtocolEndpoint)) {
        if (endpoint.servesModel?.(of.model) === false) continue;
        const protocol = endpoint.protocol as Protocol<Operation>;
        const all = readRecordings(join(folder, protocol.id));
        for (const law of protocolChecks(protocol as Protocol, { recordings: all, trials: 10 }))
          await law.run();
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
}
