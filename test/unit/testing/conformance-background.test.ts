// The kit's checks of the background mode: a correct provider passes, and each planted fault fails
// the check that is named for it.
import { expect, it } from "vitest";
import {
  apiKeySchema,
  defineProvider,
  fail,
  type Definition,
  type EndpointBackground,
} from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { openAiBackground, responses } from "tollgate/protocols/responses";
import { conformanceChecks } from "tollgate/testing";

const good = openAiBackground();

const provider = (faults: Partial<EndpointBackground>, endpoint: object = {}): Definition =>
  defineProvider({
    api: 1,
    name: "acme",
    summary: "Acme's models",
    credential: apiKeySchema,
    setup: () => ({
      endpoints: [
        {
          protocol: responses(),
          base: "https://acme.test/v1",
          auth: { header: "authorization", prefix: "Bearer ", field: "api_key" as const },
          background: { ...good, ...faults },
          ...endpoint,
        },
      ],
    }),
  });

/** Returns the failed checks of the background mode, with their messages. */
async function failuresOf(definition: Definition): Promise<Readonly<Record<string, string>>> {
  const failed: Record<string, string> = {};
  const options = { credential: { api_key: "canary-7f3a-secret" }, recordings: false } as const;
  for (const { name, run } of conformanceChecks(definition, options)) {
    const check = /background: (.*)/.exec(name)?.[1];
    if (check !== undefined) await run().catch(({ message }: Error) => (failed[check] = message));
  }
  return failed;
}

it("a correct provider passes", async () => {
  expect(await failuresOf(provider({}))).toEqual({});
  const { delete: _, ...keeps } = good;
  expect(await failuresOf(provider({}, { background: keeps }))).toEqual({});
});

it.each<{
  readonly fault: string;
  readonly background: Partial<EndpointBackground>;
  readonly endpoint?: object;
  readonly check: string;
  readonly message: RegExp;
}>([
  {
    fault: "an endpoint of another protocol",
    background: {},
    endpoint: { protocol: chatCompletions(), paths: { generate: "/responses" } },
    check: "the declaration can be used",
    message: /protocol responses/,
  },
  {
    fault: "an endpoint that always streams",
    background: {},
    endpoint: { streaming: "always" },
    check: "the declaration can be used",
    message: /not streamed/,
  },
  {
    fault: "a response that is started twice",
    background: {
      async create(...of) {
        await good.create(...of);
        return good.create(...of);
      },
    },
    check: "a response is polled to its end, with its usage",
    message: /one response/,
  },
  {
    fault: "a response that is not read",
    background: {
      poll: async (...of) => ({ ...(await good.poll(...of)), response: {} }),
    },
    check: "a response is polled to its end, with its usage",
    message: /must contain the text|has not ended/,
  },
  {
    fault: "a reference that contains the input",
    background: {
      create: async (input, client) => (await good.create(input, client)) + input.body,
    },
    check: "a reference is short, and contains no content",
    message: /prompt/,
  },
  {
    fault: "a failed response without its reason",
    background: { poll: async (...of) => ({ ...(await good.poll(...of)), message: undefined }) },
    check: "a response that failed has a reason",
    message: /message/,
  },
  {
    fault: "a failed response that is billed by a usage that it does not have",
    background: { poll: async (...of) => ({ ...(await good.poll(...of)), hasUsage: true }) },
    check: "a response that failed has a reason",
    message: /no usage/,
  },
  {
    fault: "a second cancellation that fails",
    background: {
      async cancel(reference, client) {
        const { state } = await good.poll(reference, client);
        if (state === "canceled") fail("invalid", "It was canceled before.");
        await good.cancel(reference, client);
      },
    },
    check: "a response is canceled, and canceling can be repeated",
    message: /canceled before/,
  },
  {
    fault: "a deleted response that seems to run",
    background: {
      async poll(...of) {
        try {
          return await good.poll(...of);
        } catch {
          return { state: "running" };
        }
      },
    },
    check: "a response that was deleted is not found",
    message: /after deletion/,
  },
  {
    fault: "a rejection that counts as a lost answer",
    background: {
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
    fault: "an error of the API that counts as canceled",
    background: { cancel: async (...of) => good.cancel(...of).catch(() => undefined) },
    check: "an error of the API is a fault",
    message: /cancel/,
  },
])("$fault fails", async ({ background, endpoint, check, message }) => {
  expect(await failuresOf(provider(background, endpoint))).toMatchObject({
    [check]: expect.stringMatching(message),
  });
});
