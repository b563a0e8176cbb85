"""Operations: durable sagas, whose steps are all done or all undone, whatever crashes in between."""
