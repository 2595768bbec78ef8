// The lines of jobs for a job engine, which is a plugin: they run in its config generation.
import { fail } from "../../model/error.ts";
import type { JobLines } from "../../plugin/store/job-lines.ts";
import type { EndpointConnection } from "../../plugin/provider.ts";
import type { EndpointBackground } from "../../plugin/jobs/background.ts";
import type { Generation } from "../../pipeline/generation.ts";
import {
  findBackgroundEndpoint,
  findBatchEndpoint,
  planLine,
  reserveJob,
  runLine,
  settleJob,
  settleLine,
} from "../../pipeline/job-lines.ts";
import { toClientStatus } from "../../pipeline/upstream/provider-failure.ts";
import { createEndpointClient } from "./provider-client.ts";

/**
 * Timeouts of the batch API in milliseconds. A provider checks an upload before it responds.
 */
const BATCH_TIMEOUTS = { firstByteMs: 10 * 60_000, idleMs: 5 * 60_000 } as const;

/** Timeouts of a provider's background mode in milliseconds. */
const BACKGROUND_TIMEOUTS = { firstByteMs: 2 * 60_000, idleMs: 60_000 } as const;

/** @param generation Returns the generation of the plugin. Undefined while it is built. */
export function createJobLines(generation: () => Generation | undefined): JobLines {
  const gen = () => generation() ?? fail("unavailable", "The gateway is starting.");
  return {
    planLine,
    reserveJob: (job, { parentRequest }) => reserveJob(job, parentRequest),
    settleLine: async (line, result, of) => settleLine(gen(), line, result, of),
    runLine: async (line, of) => runLine(gen(), line, of),
    settleJob: async (attempt, of) => settleJob(gen(), attempt, of),
    openBatches(target, signal) {
      if (target.isDirect) return undefined;
      const found = findBatchEndpoint(gen(), target);
      const credential = found?.provider.credentials.find((one) => one.name === target.credential);
      if (!found || !credential) return undefined;
      const { provider, endpoint } = found;
      const definition = endpoint.definition as Partial<EndpointConnection<unknown>>;
      const { batches } = found;
      const origins = [...(definition.origins ?? []), ...(batches.origins ?? [])];
      const client = createEndpointClient(provider, endpoint, {
        reach: { ...definition, origins },
        credential,
        signal,
        bound: "none",
        timeouts: BATCH_TIMEOUTS,
      });
      return { batches, client };
    },
    openBackground(target, signal) {
      const found = findBackgroundEndpoint(gen(), target);
      const credential = found?.provider.credentials.find((one) => one.name === target.credential);
      if (!found || !credential) return undefined;
      const { provider, endpoint, background } = found;
      const client = createEndpointClient(provider, endpoint, {
        credential,
        signal,
        bound: "none",
        timeouts: BACKGROUND_TIMEOUTS,
      });
      return { background: withClientMessages(gen(), background), client };
    },
  };
}

/** Returns a background mode whose messages contain no secrets and nothing about the account. */
const withClientMessages = (
  gen: Generation,
  background: EndpointBackground,
): EndpointBackground => ({
  create: (input, client) => background.create(input, client),
  poll: async (reference, client) => toClientStatus(gen, await background.poll(reference, client)),
  cancel: (reference, client) => background.cancel(reference, client),
  delete: async (reference, client) => background.delete?.(reference, client),
});
