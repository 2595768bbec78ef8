// Random request bodies: everything in the documented API, and some newer content.
import * as fc from "fast-check";

const key = fc.constantFrom("a", "b", "c d");
const said = fc.string({ minLength: 1, maxLength: 12 }).filter((s) => s.isWellFormed());
const mark = fc.constantFrom(
  {},
  {},
  { cache_control: { type: "ephemeral" } },
  { cache_control: { type: "ephemeral", ttl: "1h" } },
);
const marked = <T extends object>(of: fc.Arbitrary<T>) =>
  fc.tuple(of, mark).map(([block, m]) => ({ ...block, ...m }));
const text = marked(
  fc.oneof(
    fc.record({ type: fc.constant("text"), text: said }),
    fc.record({
      type: fc.constant("text"),
      text: said,
      citations: fc.constant([{ type: "char_location", cited_text: "x", document_index: 0 }]),
    }),
    fc.record({ type: fc.constant("text"), text: said, newer_than_us: fc.boolean() }),
  ),
);
const source = fc.oneof(
  fc.constant({ type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" }),
  fc.constant({ type: "url", url: "https://example.com/a.png" }),
  fc.constant({ type: "file", file_id: "file_1" }),
);
const image = marked(
  fc.oneof(
    fc.record({ type: fc.constant("image"), source }),
    fc.record({ type: fc.constant("image"), source, transformations: fc.constant({ resize: 1 }) }),
  ),
);
const document = marked(
  fc.record(
    {
      type: fc.constant("document"),
      source: fc.oneof(
        fc.constant({ type: "base64", media_type: "application/pdf", data: "JVBERi0=" }),
        fc.record({ type: fc.constant("text"), media_type: fc.constant("text/plain"), data: said }),
        fc.record({ type: fc.constant("content"), content: fc.array(text, { maxLength: 2 }) }),
        fc.constant({ type: "url", url: "https://example.com/a.pdf" }),
        fc.constant({ type: "file", file_id: "file_2" }),
      ),
      title: said,
      context: said,
      citations: fc.record({ enabled: fc.boolean() }),
    },
    { requiredKeys: ["type", "source"] },
  ),
);
const search = marked(
  fc.record({
    type: fc.constant("search_result"),
    source: said,
    title: said,
    content: fc.array(fc.record({ type: fc.constant("text"), text: said }), { maxLength: 2 }),
  }),
);
const reference = fc.record({ type: fc.constant("tool_reference"), tool_name: said });
const result = marked(
  fc.record(
    {
      type: fc.constant("tool_result"),
      tool_use_id: fc.uuid(),
      content: fc.oneof(
        said,
        fc.array(fc.oneof(text, image, document, search, reference), {
          minLength: 1,
          maxLength: 3,
        }),
      ),
      is_error: fc.constant(true),
      toolset_name: fc.constant("computer"),
    },
    { requiredKeys: ["type", "tool_use_id"] },
  ),
);
const input = fc.dictionary(key, fc.oneof(said, fc.integer(), fc.boolean(), fc.constant(null)));
const call = marked(
  fc.record(
    {
      type: fc.constant("tool_use"),
      id: fc.uuid(),
      name: fc.constantFrom("get_weather", "x-y"),
      input,
      caller: fc.constantFrom(
        { type: "direct" },
        { type: "code_execution_20250825", tool_id: "srvtoolu_1" },
      ),
    },
    { requiredKeys: ["type", "id", "name", "input"] },
  ),
);
const thinking = fc.oneof(
  fc.record({
    type: fc.constant("thinking"),
    thinking: said,
    signature: fc.base64String({ minLength: 4 }),
  }),
  fc.record({ type: fc.constant("redacted_thinking"), data: fc.base64String({ minLength: 4 }) }),
);
const hosted = fc.oneof(
  fc.record({
    type: fc.constant("server_tool_use"),
    id: fc.constant("srvtoolu_1"),
    name: fc.constant("web_search"),
    input,
  }),
  fc.record({
    type: fc.constant("web_search_tool_result"),
    tool_use_id: fc.constant("srvtoolu_1"),
    content: fc.constant([
      { type: "web_search_result", url: "https://e.com", encrypted_content: "E" },
    ]),
  }),
  fc.record({ type: fc.constant("compaction"), content: said }),
);

const user = fc.record({
  role: fc.constant("user"),
  // Results first, as the protocol requires.
  content: fc.oneof(
    said,
    fc
      .tuple(
        fc.uniqueArray(result, { maxLength: 2, selector: (r) => r.tool_use_id }),
        fc.array(fc.oneof(text, image, document, search, reference), {
          minLength: 1,
          maxLength: 3,
        }),
      )
      .map(([results, others]) => [
        ...results.toSorted((a, b) => Number("toolset_name" in a) - Number("toolset_name" in b)),
        ...others,
      ]),
  ),
});
const assistant = fc.record({
  role: fc.constant("assistant"),
  content: fc.oneof(
    said,
    fc.array(fc.oneof(thinking, text, call, hosted), { minLength: 1, maxLength: 4 }),
  ),
});
const system = fc.oneof(
  fc.record({
    role: fc.constant("system"),
    content: fc.oneof(said, fc.array(text, { minLength: 1 })),
  }),
  fc.record({
    role: fc.constant("system"),
    content: said,
    clear_at: fc.constant("next_user_message"),
  }),
);

const tool = fc.oneof(
  fc.record(
    {
      name: fc.constantFrom("a", "b", "c", "d"),
      input_schema: fc.constant({ type: "object", properties: {} }),
      description: said,
      strict: fc.constant(true),
      defer_loading: fc.boolean(),
      input_examples: fc.constant([{ x: 1 }]),
      cache_control: fc.constant({ type: "ephemeral" }),
    },
    { requiredKeys: ["name", "input_schema"] },
  ),
  fc.constantFrom(
    { type: "web_search_20250305", name: "web_search", max_uses: 3 },
    { type: "bash_20250124", name: "bash" },
    { type: "mcp_toolset", mcp_server_name: "m" },
  ),
);

const optional = {
  system: fc.oneof(said, fc.array(text, { minLength: 1, maxLength: 3 })),
  stop_sequences: fc.uniqueArray(said, { minLength: 1, maxLength: 5 }),
  stream: fc.constant(true),
  temperature: fc.constantFrom(0, 0.5, 1),
  top_p: fc.constantFrom(0.1, 0.99),
  top_k: fc.integer({ min: 1, max: 50 }),
  output_config: fc.record(
    {
      effort: fc.constantFrom("low", "high", "max"),
      format: fc.constant({ type: "json_schema", schema: { type: "object" } }),
      task_budget: fc.constant({ type: "tokens", total: 9 }),
    },
    { requiredKeys: [] },
  ),
  tools: fc.uniqueArray(tool, {
    minLength: 1,
    maxLength: 4,
    selector: (t) => (t as { name?: string }).name ?? t,
  }),
  tool_choice: fc.constantFrom(
    { type: "auto" },
    { type: "auto", disable_parallel_tool_use: true },
    { type: "any", disable_parallel_tool_use: false },
    { type: "tool", name: "a" },
    { type: "none" },
    { type: "newer" },
  ),
  metadata: fc.constantFrom({ user_id: "u1" }, { user_id: "a@b.c", more: 1 }),
  service_tier: fc.constantFrom("auto", "standard_only"),
  cache_control: fc.constantFrom({ type: "ephemeral" }, { type: "ephemeral", ttl: "1h" }),
  container: fc.constantFrom("c1", { id: "c1", skills: [] }),
  context_management: fc.constant({ edits: [{ type: "clear_thinking_20251015" }] }),
  mcp_servers: fc.constant([{ type: "url", url: "https://m" }]),
  speed: fc.constant("fast"),
  thread: fc.constant({ type: "create" }),
};

const thoughts = fc.constantFrom(
  { type: "adaptive" },
  { type: "adaptive", display: "omitted" },
  { type: "adaptive", display: "summarized" },
  { type: "adaptive", display: "updates", block_binding: "x" },
  { type: "between_tools" },
  { type: "disabled" },
);

export const bodies = fc
  .tuple(
    fc.record({
      model: fc.constant("m"),
      max_tokens: fc.integer({ min: 4096, max: 9000 }),
      messages: fc
        .array(fc.tuple(user, fc.oneof(assistant, system)), { maxLength: 3 })
        .map((pairs) => pairs.flat()),
      last: user,
    }),
    fc.record({ ...optional, thinking: thoughts }, { requiredKeys: [] }),
  )
  .map(([{ messages, last, ...body }, more]) => {
    const whole = { ...body, messages: [...messages, last], ...more };
    // Without tools there is no tool choice.
    if (!("tools" in more) && whole.tool_choice?.type !== "none") delete whole.tool_choice;
    return whole as Record<string, any>;
  });
