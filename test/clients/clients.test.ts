// The short form of `npm run clients`: a few turns of each client that is already installed. On a
// test machine (CI, or CLIENTS=1) it is installed first, and CLIENTS=1 runs all turns.
import { afterAll, describe, it } from "vitest";
import { checksOf, CLIENTS } from "./clients.ts";
import { isInstalled } from "./install.ts";
import { NIGHTLY } from "../kit/law-effort.ts";

const { CI, CLIENTS: all } = process.env;
// A turn with two files contains a text turn. What only Codex does is played in its own protocol.
const SHORT = NIGHTLY
  ? /a text turn \(model\)|two files at once|apply_patch|WebSocket/
  : /two files at once|on responses: (an apply_patch|speaks over a WebSocket)/;

for (const client of CLIENTS) {
  const played = all !== undefined || CI !== undefined || isInstalled(client.package);
  const cast = played ? await checksOf(client) : undefined;
  describe.skipIf(!cast)(`${client.package.name} ${client.package.version}`, () => {
    afterAll(() => cast?.[Symbol.asyncDispose]());
    if (!cast) it("is not installed here; CLIENTS=1 fetches it");
    for (const { name, run } of cast?.checks ?? [])
      if (all !== undefined || SHORT.test(name)) it(name, run);
  });
}
