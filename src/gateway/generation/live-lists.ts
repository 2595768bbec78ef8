// What providers say of themselves: asked in the background, for as long as a generation follows them.
import {
  createRefresh,
  datedLine,
  type ListSource,
  type Refresh,
} from "../../catalogue/refresh.ts";
import { revalidating } from "../../catalogue/revalidate.ts";
import { faultOf } from "../../model/error.ts";
import type { BuiltGeneration } from "./build.ts";
import { listOfOthers, type KnownLists } from "../services/others-lists.ts";
import type { Services } from "../services/services.ts";
import { lineTo } from "./mounting.ts";

export const refreshing = ({ lists, log }: Services): Refresh =>
  createRefresh(lists, {
    tell: (line, error) => {
      const { provider, credential, count, lastError } = line;
      if (!lastError) return log.info({ provider, count }, "a provider's model list is back");
      const { failures, nextAt, lastError: last } = datedLine(line);
      log.warn(
        {
          provider,
          credential,
          failures,
          nextAt,
          lastError: last,
          ...(faultOf(error) || error === undefined ? {} : { err: error }),
        },
        `a provider's model list cannot be had; the last good one stays: ${lastError.message}`,
      );
    },
  });

/** One line for each credential of each provider that can be asked; each remembers what it was told. */
export const linesOf = (
  { providers }: Pick<BuiltGeneration, "providers">,
  known?: KnownLists,
): ListSource[] =>
  [...providers.values()].flatMap((provider) =>
    provider.provider.models
      ? provider.credentials.map(({ name }, i) => {
          const remembering = revalidating();
          const models = async (signal: AbortSignal) => {
            const line = lineTo(provider, i, signal);
            try {
              return await provider.provider.models!({ ...line, fetch: remembering(line.fetch) });
            } catch (error) {
              const whose = { provider: provider.name, credential: name };
              // What the provider said is told, whatever others say.
              if (known) await listOfOthers(known, whose).catch(() => undefined);
              throw error;
            }
          };
          return { provider: provider.name, credential: name, models };
        })
      : [],
  );
