// A client that is rejected repeatedly causes one log line immediately and one per minute, not one
// per request.
import { expect, it } from "vitest";
import { fail, type ErrorKind } from "tollgate/plugin";
import { startTestServices } from "../../kit/test-services.ts";
import { until } from "../../kit/wait.ts";
import { createToyProtocol } from "../toy-protocol.ts";

const REFUSALS: readonly ErrorKind[] = [
  "invalid",
  "context_length",
  "content_policy",
  "unsupported",
  "unauthenticated",
  "forbidden",
  "privacy",
  "not_found",
  "conflict",
  "too_large",
  "quota",
  "rate_limited",
];

it.each(REFUSALS)("%s", async (kind) => {
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: {
      p: {
        endpoints: [
          { protocol: createToyProtocol(), base: "http://127.0.0.1:9", auth: "none" as const },
        ],
      },
    },
    hooks: [{ rewrite: () => fail(kind, "Not now.") }],
  });
  const all = await Promise.all(
    Array.from({ length: 50 }, () => s.ask({ model: "p/m", text: "x" })),
  );
  for (const res of all) expect(res.status).toBeGreaterThanOrEqual(400);
  const lines = () => s.log.filter(({ message }) => message === "request refused");
  await until(() => lines().length > 0);
  expect(lines()).toHaveLength(1);
  s.house.logThrottle[Symbol.dispose]();
  expect(lines().map(({ fields }) => fields["times"] ?? 1)).toEqual([1, 49]);
});
