// An author's first hour: a plugin is created, edited, tested, packed, mounted by an operator who
// locks it, called, and billed.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { startUpstream } from "tollgate/testing";
import {
  begun,
  must,
  operator,
  packed,
  proved,
  root,
  run,
  serving,
  workshop,
} from "./clean-install.ts";
import type { Rig } from "../rig.ts";

const EDIT = join(root, "test/rig/authoring/hour/edit.patch");

/** Acme's real API: it requires turns, counts reasoning, and states why it ends. */
const acme = () => ({
  "POST /v1/say": {
    headers: { "content-type": "application/x-ndjson" },
    body: [
      '{"say":"Good "}\n',
      '{"say":"day."}\n',
      '{"end":"length","read":21,"written":4,"thought":3}\n',
    ],
  },
});

export const rig: Rig = {
  options: {},
  async run(_of, say) {
    const wrong: string[] = [];
    const began = performance.now();
    const step = (what: string) =>
      say(`${((performance.now() - began) / 1000).toFixed(1).padStart(6)} s  ${what}`);
    using at = await workshop();
    step("Tollgate is packed");
    const folder = await begun(at, ["provider", "acme", "--template", "native"], "acme");
    step("begun");
    await must(folder, "npm", "install", "--no-audit", "--no-fund", "--prefer-offline");
    step("installed");
    await must(folder, "git", "apply", EDIT);
    // The recording has Acme's new response, and the old test expects another one: it must fail.
    const before = await run(folder, "npx", "vitest", "run", "test/gateway.test.ts");
    if (before.code === 0) wrong.push("the tests did not notice the edit");
    await must(folder, "git", "apply", EDIT.replace("edit.", "tests."));
    await proved(folder);
    step("edited, tested, checked");
    const tarball = await packed(at, folder);
    const house = await operator(at, "house", []);
    const program = join(house, "node_modules/tollgate/dist/src/cli/bin.js");
    const added = await must(house, "node", program, "plugin", "add", tarball, "--yes");
    if (!readFileSync(join(house, "plugins.lock.yaml"), "utf8").includes("tollgate-provider-acme"))
      wrong.push(`it is not locked: ${added.out}`);
    step("packed, installed and locked");
    await using up = await startUpstream(acme());
    await using gateway = await serving(
      house,
      `providers:\n  acme: { use: acme, with: { base_url: "${up.url}/v1", api_key: "\${env:ACME}" } }\n`,
      { ACME: "canary-acme-7f3a91" },
    );
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${gateway.key}` },
      body: JSON.stringify({ model: "acme/large", messages: [{ role: "user", content: "Hello" }] }),
    });
    const text = await answer.text();
    if (!text.includes("Good day.")) wrong.push(`it was answered ${answer.status}: ${text}`);
    const asked = up.requests.at(-1)?.json() as { turns?: unknown };
    if (!Array.isArray(asked?.turns)) wrong.push(`the edit is not in it: ${JSON.stringify(asked)}`);
    step("mounted, and it answers");
    const { out } = await gateway.tollgate("usage", "--by", "model", "--json");
    for (const count of ['"input": 21', '"output": 4', '"reasoning": 3'])
      if (!out.includes(count)) wrong.push(`the ledger has no ${count}: ${out.slice(0, 400)}`);
    step("its usage is in the ledger");
    return {
      wrong,
      counts: { minutes: ((performance.now() - began) / 60_000).toFixed(1) },
      seed: 0,
    };
  },
};
