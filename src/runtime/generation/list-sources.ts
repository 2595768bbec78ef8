// Defines the sources of live model lists. They are refreshed in the background while a generation
// uses them.
import {
  createListRefresher,
  withIsoDates,
  type ListSource,
  type ListRefresher,
} from "../../catalog/list-refresher.ts";
import { createConditionalFetch } from "../../catalog/conditional-fetch.ts";
import { isClientCredential } from "../../pipeline/exchange/client-credential.ts";
import { getFault } from "../../model/error.ts";
import type { BuiltGeneration } from "./build-generation.ts";
import { adoptNewestPeerList, type ListsAndPeers } from "../services/peer-model-lists.ts";
import type { Services } from "../services.ts";
import { createCredentialClient } from "./mount-endpoint.ts";

export const createGatewayListRefresher = ({ modelLists, log }: Services): ListRefresher =>
  createListRefresher(modelLists, {
    onStatusChange: (line, error) => {
      const { provider, credential, modelCount, lastError } = line;
      if (!lastError)
        return log.info({ provider, count: modelCount }, "provider model list available again");
      const { failures, nextRefreshAt, lastError: last } = withIsoDates(line);
      log.warn(
        {
          provider,
          credential,
          failures,
          nextRefreshAt,
          lastError: last,
          ...(getFault(error) || error === undefined ? {} : { err: error }),
        },
        `provider model list unavailable, last good list kept: ${lastError.message}`,
      );
    },
  });

/**
 * Returns one source per credential of each provider with `listModels`. Each source stores its last
 * response for conditional requests.
 */
export const listSourcesOf = (
  { providers }: Pick<BuiltGeneration, "providers">,
  known?: ListsAndPeers,
): ListSource[] =>
  [...providers.values()].flatMap((provider) =>
    // The gateway has no credential for a provider whose calls the clients pay.
    provider.plugin.listModels && !provider.credentials.some(isClientCredential)
      ? provider.credentials.map(({ name }, i) => {
          const remembering = createConditionalFetch();
          const models = async (signal: AbortSignal) => {
            const line = createCredentialClient(provider, i, signal);
            try {
              return await provider.plugin.listModels!({ ...line, fetch: remembering(line.fetch) });
            } catch (error) {
              const owner = { provider: provider.name, credential: name };
              // The provider's error is reported even if another gateway has a newer list.
              if (known) await adoptNewestPeerList(known, owner).catch(() => undefined);
              throw error;
            }
          };
          return { provider: provider.name, credential: name, fetchModels: models };
        })
      : [],
  );
