// The short form of `npm run clients`: a few turns of each client, where it is installed already, and where a machine is
// there to test (CI, or CLIENTS=1): then it is fetched, and CLIENTS=1 plays all of it.
import { afterAll, describe, it } from "vitest";
import { checksOf, CLIENTS } from "./clients.ts";
import { isInstalled } from "./install.ts";

const { CI, CLIENTS: all } = process.env;
const SHORT = /a text turn \(model\)|two files at once|apply_patch/;

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
