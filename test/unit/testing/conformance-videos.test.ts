// The kit's checks of videos: a correct provider passes, and each planted fault fails the check that
// is named for it.
import { expect, it } from "vitest";
import {
  apiKeySchema,
  defineProvider,
  fail,
  type Definition,
  type EndpointVideos,
} from "tollgate/plugin";
import { openAiVideos } from "tollgate/protocols/videos";
import { conformanceChecks } from "tollgate/testing";

const good = openAiVideos();

const provider = (faults: Partial<EndpointVideos>, videos = good): Definition =>
  defineProvider({
    api: 1,
    name: "acme",
    summary: "Acme's videos",
    credential: apiKeySchema,
    setup: () => ({
      endpoints: [
        {
          operation: "video" as const,
          base: "https://acme.test/v1",
          auth: { header: "authorization", prefix: "Bearer ", field: "api_key" as const },
          videos: { ...videos, ...faults },
        },
      ],
    }),
  });

/** Returns the failed checks of videos, with their messages. */
async function failuresOf(definition: Definition): Promise<Readonly<Record<string, string>>> {
  const failed: Record<string, string> = {};
  const options = { credential: { api_key: "canary-7f3a-secret" }, recordings: false } as const;
  for (const { name, run } of conformanceChecks(definition, options)) {
    const check = /videos: (.*)/.exec(name)?.[1];
    if (check !== undefined) await run().catch(({ message }: Error) => (failed[check] = message));
  }
  return failed;
}

it("a correct provider passes", async () => {
  expect(await failuresOf(provider({}))).toEqual({});
  const { delete: _, ...keeps } = good;
  expect(await failuresOf(provider({}, { ...keeps, canRemix: false }))).toEqual({});
});

const changeStatus =
  (change: Partial<Awaited<ReturnType<EndpointVideos["poll"]>>>): EndpointVideos["poll"] =>
  async (...of) => {
    const status = await good.poll(...of);
    return status.state === "queued" || status.state === "running"
      ? status
      : { ...status, ...change };
  };

it.each<{
  readonly fault: string;
  readonly videos: Partial<EndpointVideos>;
  readonly check: string;
  readonly message: RegExp;
}>([
  {
    fault: "a video that is started twice",
    videos: {
      async create(...of) {
        await good.create(...of);
        return good.create(...of);
      },
    },
    check: "a video is polled to its end, with its seconds and size",
    message: /one video/,
  },
  {
    fault: "a video that is complete before it is polled",
    videos: {
      async create(...of) {
        const { reference, status } = await good.create(...of);
        return { reference, status: { ...status, state: "completed" } };
      },
    },
    check: "a video is polled to its end, with its seconds and size",
    message: /has not ended/,
  },
  {
    fault: "a length in milliseconds",
    videos: { poll: changeStatus({ seconds: 8_000 }) },
    check: "a video is polled to its end, with its seconds and size",
    message: /seconds that are billed/,
  },
  {
    fault: "a size that is not the one of the video",
    videos: { poll: changeStatus({ size: "720x1280" }) },
    check: "a video is polled to its end, with its seconds and size",
    message: /size that is billed/,
  },
  {
    fault: "a reference that contains the prompt",
    videos: {
      async create(input, client) {
        const started = await good.create(input, client);
        return { ...started, reference: `${started.reference} ${input.request.prompt}` };
      },
    },
    check: "a reference is short, and contains no content",
    message: /prompt/,
  },
  {
    fault: "a reference that is too long",
    videos: {
      async create(...of) {
        const started = await good.create(...of);
        return { ...started, reference: started.reference + " ".repeat(3_000) };
      },
    },
    check: "a reference is short, and contains no content",
    message: /2 KiB/,
  },
  {
    fault: "a video that failed without its reason",
    videos: { poll: changeStatus({ error: undefined }) },
    check: "a video that failed has a reason and no length to bill",
    message: /error/,
  },
  {
    fault: "a video that failed and counts as complete",
    videos: { poll: changeStatus({ state: "completed" }) },
    check: "a video that failed has a reason and no length to bill",
    message: /failed/,
  },
  {
    fault: "content that is cut off",
    videos: {
      async readContent(...of) {
        const { headers, body } = await good.readContent(...of);
        return { headers, body: firstBytes(body) };
      },
    },
    check: "the content is returned unchanged",
    message: /complete/,
  },
  {
    fault: "content without its type",
    videos: {
      readContent: async (...of) => ({ ...(await good.readContent(...of)), headers: {} }),
    },
    check: "the content is returned unchanged",
    message: /content type/,
  },
  {
    fault: "a deleted video that seems to have failed",
    videos: {
      async poll(...of) {
        try {
          return await good.poll(...of);
        } catch {
          return { state: "failed", error: { code: "gone", message: "Gone." } };
        }
      },
    },
    check: "a video that was deleted is not found",
    message: /poll\(\) of a deleted video/,
  },
  {
    fault: "a second deletion that fails",
    videos: {
      async delete(reference, client) {
        await good.poll(reference, client);
        await good.delete!(reference, client);
      },
    },
    check: "a video that was deleted is not found",
    message: /No such video/,
  },
  {
    fault: "a rejection that counts as a lost answer",
    videos: {
      async create(...of) {
        try {
          return await good.create(...of);
        } catch {
          return fail("upstream", "It did not work.");
        }
      },
    },
    check: "a rejection is distinguished from a lost answer",
    message: /status 400/,
  },
  {
    fault: "an error of the API that counts as running",
    videos: {
      poll: async (...of) => good.poll(...of).catch(() => ({ state: "running" as const })),
    },
    check: "an error of the API is a fault",
    message: /poll/,
  },
])("$fault fails", async ({ videos, check, message }) => {
  expect(await failuresOf(provider(videos))).toMatchObject({
    [check]: expect.stringMatching(message),
  });
});

async function* firstBytes(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  for await (const piece of body) return yield piece.subarray(0, 10);
}
