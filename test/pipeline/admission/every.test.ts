// Every bound is tested at its limit and one above it, in every place that enforces it. A bound
// without a driver does not compile.
import { describe, it } from "vitest";
import type { BoundName } from "../../../src/lib/bounds.ts";
import { everyNth } from "../../kit/law-effort.ts";
import { answers } from "./answers.ts";
import { schemas } from "./gemini.ts";
import { providers } from "./providers.ts";
import { requests } from "./requests.ts";
import { sockets } from "./sockets.ts";
import { stops } from "./stops.ts";
import { judge, type Driver } from "./way.ts";

const DRIVERS: Record<BoundName, Driver> = {
  ...requests,
  ...schemas,
  ...sockets,
  ...providers,
  ...answers,
  ...stops,
  response: { ...answers.response, ...providers.response },
  inFlight: { ...requests.inFlight, ...providers.inFlight },
  errorBody: { ...answers.errorBody, ...providers.errorBody },
};

describe.each(Object.entries(DRIVERS) as [BoundName, Driver][])("%s", (name, driver) => {
  const ways = Object.entries(driver);
  it.each(ways.length > 2 ? everyNth(3, ways, name.length) : ways)("%s", (_, way) =>
    judge(name, way),
  );
});
