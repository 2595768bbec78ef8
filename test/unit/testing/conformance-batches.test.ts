// The kit's checks of batches: a correct provider passes, and each planted fault fails the check that
// is named for it.
import { expect, it } from "vitest";
import {
  apiKeySchema,
  defineProvider,
  fail,
  type Definition,
  type EndpointBatches,
} from "tollgate/plugin";
import { openAiBatches } from "tollgate/protocols/batches";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { conformanceChecks } from "tollgate/testing";

const good = openAiBatches();

const provider = (faults: Partial<EndpointBatches>, endpoint: object = {}): Definition =>
  defineProvider({
    api: 1,
    name: "acme",
    summary: "Acme's models",
    credential: apiKeySchema,
    setup: () => ({
      endpoints: [
        {
          protocol: chatCompletions(),
          base: "https://acme.test/v1",
          auth: { header: "authorization", prefix: "Bearer ", field: "api_key" as const },
          batches: { ...good, ...faults },
          ...endpoint,
        },
      ],
    }),
  });

/** Returns the failed checks of batches, with their messages. */
async function failuresOf(definition: Definition): Promise<Readonly<Record<string, string>>> {
  const failed: Record<string, string> = {};
  const options = { credential: { api_key: "canary-7f3a-secret" }, recordings: false } as const;
  for (const { name, run } of conformanceChecks(definition, options)) {
    const check = /batches: (.*)/.exec(name)?.[1];
    if (check !== undefined) await run().catch(({ message }: Error) => (failed[check] = message));
  }
  return failed;
}

it("a correct provider passes", async () => {
  expect(await failuresOf(provider({}))).toEqual({});
  const declared = {
    servesModel: (model: string) => model !== "gpt-6",
    origins: ["https://a.test"],
  };
  expect(await failuresOf(provider(declared))).toEqual({});
});

let turn = 0;

it.each<{
  readonly fault: string;
  readonly batches: Partial<EndpointBatches>;
  readonly endpoint?: object;
  readonly check: string;
  readonly message: RegExp;
}>([
  {
    fault: "an endpoint that always streams",
    batches: {},
    endpoint: { streaming: "always" },
    check: "the declaration can be used",
    message: /cannot run batches/,
  },
  {
    fault: "more lines required than allowed",
    batches: { limits: { lines: 10, bytes: 1_000_000, minLines: 11 } },
    check: "the declaration can be used",
    message: /minLines/,
  },
  {
    fault: "an origin with a path",
    batches: { origins: ["https://storage.test/bucket"] },
    check: "the declaration can be used",
    message: /is not an origin/,
  },
  {
    fault: "a list of models that changes",
    batches: { servesModel: () => turn++ % 2 === 0 },
    check: "the declaration can be used",
    message: /the same/,
  },
  {
    fault: "no lines allowed",
    batches: { limits: { lines: 0, bytes: 1_000_000 } },
    check: "limits are positive, and a reference is short",
    message: /limits.lines/,
  },
  {
    fault: "a reference that contains the input",
    batches: { submit: async (...of) => `${await good.submit(...of)}${" ".repeat(3_000)}` },
    check: "limits are positive, and a reference is short",
    message: /2 KiB/,
  },
  {
    fault: "lines that are sent in another order",
    batches: {
      submit: (input, client) =>
        good.submit(
          {
            ...input,
            async *lines() {
              const all = [];
              for await (const line of input.lines()) all.unshift(line);
              yield* all;
            },
          },
          client,
        ),
    },
    check: "each line is sent once, and its result has its ID",
    message: /in order/,
  },
  {
    fault: "a failed line that counts as answered with 200",
    batches: {
      async *readResults(...of) {
        for await (const one of good.readResults(...of)) yield { ...one, status: 200 };
      },
    },
    check: "the order and the repetition of results do not matter",
    message: /failed: status 200/,
  },
  {
    fault: "a canceled batch that is reported as completed",
    batches: {
      async poll(...of) {
        const status = await good.poll(...of);
        return status.state === "ended" ? { ...status, outcome: "completed" } : status;
      },
    },
    check: "a batch that was canceled or expired returns the results that exist",
    message: /expired/,
  },
  {
    fault: "a rejected batch without its reason",
    batches: {
      async poll(...of) {
        return { ...(await good.poll(...of)), message: undefined };
      },
    },
    check: "a batch that failed reports the reason",
    message: /message/,
  },
  {
    fault: "a lost submission that is not found",
    batches: { find: async () => undefined },
    check: "a batch is found after the response to its submission was lost",
    message: /does not return the batch/,
  },
  {
    fault: "deleted results that count as none",
    batches: {
      async *readResults(...of) {
        try {
          yield* good.readResults(...of);
        } catch {
          // Treated as the end.
        }
      },
    },
    check: "results that are cut off or deleted are an error",
    message: /cut off/,
  },
  {
    fault: "a second cancellation that fails",
    batches: {
      async cancel(reference, client) {
        const { state } = await good.poll(reference, client);
        if (state === "ended") fail("invalid", "The batch has ended.");
        await good.cancel(reference, client);
      },
    },
    check: "canceling and discarding can be repeated",
    message: /has ended/,
  },
  {
    fault: "an error of the API that is reported as a running batch",
    batches: {
      async poll(...of) {
        try {
          return await good.poll(...of);
        } catch {
          return { state: "running" };
        }
      },
    },
    check: "an error of the API is a fault",
    message: /poll/,
  },
])("$fault fails", async ({ batches, endpoint, check, message }) => {
  expect(await failuresOf(provider(batches, endpoint))).toMatchObject({
    [check]: expect.stringMatching(message),
  });
});
