// The calls of jobs for a job engine, which is a plugin: they run in its config generation.
import { fail } from "../../model/error.ts";
import type { JobCalls } from "../../plugin/jobs/job-calls.ts";
import type { Generation } from "../../pipeline/generation.ts";
import {
  findVideoEndpoint,
  planJobCall,
  reserveJobCall,
  settleJobCall,
} from "../../pipeline/job-calls.ts";
import { createEndpointClient } from "./provider-client.ts";

/** Timeouts of requests for videos in milliseconds. */
const VIDEO_TIMEOUTS = { firstByteMs: 2 * 60_000, idleMs: 60_000 } as const;

/** @param generation Returns the generation of the plugin. Undefined while it is built. */
export function createJobCalls(generation: () => Generation | undefined): JobCalls {
  const gen = () => generation() ?? fail("unavailable", "The gateway is starting.");
  return {
    planCall: planJobCall,
    reserveCall: (attempt, call, { parentRequest }) => reserveJobCall(attempt, call, parentRequest),
    settleCall: async (attempt, end) => settleJobCall(gen(), attempt, end),
    openVideos(target, signal) {
      const found = findVideoEndpoint(gen(), target);
      const credential = found?.provider.credentials.find((one) => one.name === target.credential);
      if (!found || !credential) return undefined;
      const { provider, endpoint, videos } = found;
      const client = createEndpointClient(provider, endpoint, {
        credential,
        signal,
        bound: "none",
        timeouts: VIDEO_TIMEOUTS,
      });
      return { videos, client };
    },
  };
}
