"""Operations: several effects that happen all or not at all, whatever crashes in between."""
