// Creates the table of backends in plugins/providers/README.md from the rows.
import { ALL_ROWS } from "../../plugins/providers/provider-rows.ts";
import { type Backend, OPENAI_ONLY } from "../../plugins/providers/row-backend.ts";

type Chat = NonNullable<Backend["protocols"]["chat-completions"]>;
type Reasoning = NonNullable<Chat["reasoning"]>;

const code = (text: string) => `\`${text}\``;
const list = (parts: readonly (string | false | undefined)[]) => parts.filter(Boolean).join(", ");

/** Returns the protocols, each with its base URL, header, and models if they differ. */
function spoken({ protocols }: Backend): string {
  return Object.entries(protocols)
    .map(([protocol, { base, header, servedModels }]) => {
      const more = list([
        base && code(base),
        header && code(header),
        servedModels && "some models",
      ]);
      return more === "" ? protocol : `${protocol} (${more})`;
    })
    .join(", ");
}

const thought = (r: Reasoning): string =>
  list([
    r.control === "none" ? "not configurable" : r.control && code(r.control),
    r.alsoAcceptsEffort && "and effort",
    r.efforts && `${r.efforts[0]} to ${r.efforts.at(-1)}`,
    r.canDisable === false && "always on",
  ]);

function thinking({ protocols }: Backend): string {
  const chat = protocols["chat-completions"];
  if (!chat?.reasoning) return protocols.messages?.thinking ?? "";
  const ways = new Set(
    [chat.reasoning, ...(chat.models ?? []).map((m) => m.reasoning ?? {})].map(thought),
  );
  const { echo, echoRequired } = chat.reasoning;
  return list([
    [...ways].filter(Boolean).join(" / "),
    echo &&
      echo !== "never" &&
      `returned in ${code(echo)}${echoRequired ? ", always sent back" : ""}`,
  ]);
}

function quirks({ protocols }: Backend): string {
  const chat: Chat = protocols["chat-completions"] ?? {};
  const { images } = protocols;
  const dropped = (chat.dropFields ?? []).filter((f) => !OPENAI_ONLY.some((known) => known === f));
  return [
    chat.maxTokens && code(chat.maxTokens),
    chat.streamUsage === "none" && "always reports usage",
    chat.toolChoice && `tool choice: ${chat.toolChoice}`,
    chat.toolIds && `tool call IDs: ${chat.toolIds}`,
    chat.renameFields &&
      Object.entries(chat.renameFields)
        .map(([from, to]) => code(`${from} → ${to}`))
        .join(", "),
    chat.setFields &&
      list(
        Object.values(chat.setFields)
          .flatMap((fields) => Object.keys(fields as object))
          .map((f) => `sets ${code(f)}`),
      ),
    chat.rejectFields && `rejects ${list(chat.rejectFields.map(code))}`,
    dropped.length > 0 && `drops ${list(dropped.map(code))}`,
    chat.strictTools === true && "strict tools",
    chat.cacheMarks && `cache marks: ${code(chat.cacheMarks)}`,
    chat.reasoningNotInOutput && "reasoning not in output count",
    chat.thinkTags && "reasoning in tags",
    images?.responseFormat && `image format: ${images.responseFormat}`,
    images?.size && `image sizes: ${images.size}`,
    images?.maxImages !== undefined && `at most ${images.maxImages} images`,
  ]
    .filter(Boolean)
    .join("; ");
}

const models = ({ models: shape }: Backend): string =>
  shape === false
    ? "no"
    : list([
        "yes",
        shape?.path && code(shape.path),
        shape?.prices && `prices ${shape.prices.replace("_", " ")}`,
      ]);

const batches = ({ batches: own }: Backend): string =>
  own ? `${own.api ?? "openai"}: ${list(own.protocols)}` : "";

const row = (b: Backend): readonly string[] => [
  code(b.name),
  b.summary.replace(/; base_url.*/, ""),
  b.base === undefined ? "set `base_url`" : b.base.replace(/^https:\/\//, ""),
  spoken(b),
  thinking(b),
  quirks(b),
  models(b),
  batches(b),
  b.limits === "none" ? "`retry-after`" : b.limits,
  b.errors,
  b.stability ?? "experimental",
  list(b.unverified ?? []),
];

const HEAD =
  "Provider | Vendor | Base URL | Protocols | Reasoning | Quirks | Model list | Batches | Rate limits | Error format | Stability | Unverified".split(
    " | ",
  );
const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;

export const table = (): string =>
  [line(HEAD), line(HEAD.map(() => "---")), ...ALL_ROWS.map((b) => line(row(b)))].join("\n");
