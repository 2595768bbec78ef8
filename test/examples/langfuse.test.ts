// The package's own tests, as its author runs them.
await import("../../examples/packages/observer-langfuse/test/langfuse.test.ts");
