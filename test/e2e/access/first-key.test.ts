// The first key of a new gateway: any middleware can ask for it, as the built-in one does.
import { access } from "node:fs/promises";
import { expect, it } from "vitest";
import { startInProcess } from "../../kit/in-process.ts";

const middleware = (needsFirstKey: boolean) => `
import { defineMiddleware, fail } from "tollgate/plugin";
export default defineMiddleware({
  api: 1,
  name: "company-auth",
  summary: "Identifies clients by the keys of the store",
  sends: "nowhere",
  setup: (_, ctx) => ({
    needsFirstKey: ${needsFirstKey},
    async admit(x, secret) {
      const found = secret && (await ctx.keys.find(secret));
      if (!found) fail("unauthenticated", "Unknown key.");
      x.identify(found);
    },
  }),
});`;

it.each([true, false])("is created if a plugin of the operator needs it: %s", async (needs) => {
  await using at = await startInProcess({
    yaml: "frontends: [chat-completions]\nmiddleware: [./company-auth.ts]\nproviders: { demo: {} }\n",
    files: { "company-auth.ts": middleware(needs) },
  });
  const exists = await access(`${at.stateDir}/first-key`).then(
    () => true,
    () => false,
  );
  expect(exists).toBe(needs);
  if (!needs) return;
  const response = await fetch(`${at.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${at.key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "demo/echo", messages: [{ role: "user", content: "Hi" }] }),
  });
  expect(response.status).toBe(200);
});
