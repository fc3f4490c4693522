"""What several questions share: settings, training, records, wording."""
