module pipemark/entrant

go 1.21
